package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import org.apache.qpid.jms.message.JmsMessage;
import org.junit.jupiter.api.Test;

/** Where messages go that nobody can take, or that nobody took in time. */
class DeadLetterTest extends Scenario {
    /** Attempts that a broker makes as it comes. */
    private static final int MAX_DELIVERY_ATTEMPTS = 10;

    private MessageConsumer deadLetters(Session session) throws JMSException {
        Queue dead = session.createQueue(Broker.DEAD_LETTERS);
        return session.createConsumer(dead, "JMSCorrelationID = '" + name() + "'");
    }

    private Message send(Session session, long timeToLive) throws JMSException {
        Message message = session.createTextMessage("poison");
        message.setJMSCorrelationID(name());
        message.setStringProperty("key", "value");
        MessageProducer producer = session.createProducer(queue(session));
        producer.setTimeToLive(timeToLive);
        producer.send(message);
        return message;
    }

    private Message deadAfterRollbacks(Message[] sent) throws Exception {
        Session session = session();
        sent[0] = send(session, 0);
        Session transacted = session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = transacted.createConsumer(queue(session));
        for (int attempt = 1; attempt <= MAX_DELIVERY_ATTEMPTS; attempt++) {
            assertEquals(attempt, next(consumer).getIntProperty("JMSXDeliveryCount"));
            transacted.rollback();
        }
        assertNothing(consumer);
        return next(deadLetters(session));
    }

    @Test
    void afterTenAttempts() throws Exception {
        Message[] sent = new Message[1];
        Message dead = deadAfterRollbacks(sent);
        assertEquals("poison", text(dead));
        assertEquals("value", dead.getStringProperty("key"));
        assertEquals(sent[0].getJMSMessageID(), dead.getJMSMessageID());
        assertEquals(sent[0].getJMSTimestamp(), dead.getJMSTimestamp());
    }

    @Test
    @Needs(Feature.DEAD_LETTER_ANNOTATIONS)
    void afterTenAttemptsWithTheReason() throws Exception {
        long before = System.currentTimeMillis();
        Message dead = deadAfterRollbacks(new Message[1]);
        assertReason(dead, "attempts", before);
        assertEquals(MAX_DELIVERY_ATTEMPTS, ((Number) annotation(dead, "attempts")).intValue());
    }

    /** What JMS itself reads: properties, and a selector for them. */
    @Test
    @Needs(Feature.DEAD_LETTER_ANNOTATIONS)
    void propertiesTellTheReason() throws Exception {
        long before = System.currentTimeMillis();
        Message dead = deadAfterRollbacks(new Message[1]);
        assertEquals("attempts", dead.getStringProperty("dead_letter_reason"));
        assertEquals(name(), dead.getStringProperty("dead_letter_queue"));
        assertEquals(MAX_DELIVERY_ATTEMPTS, dead.getIntProperty("dead_letter_attempts"));
        long at = dead.getLongProperty("dead_letter_time");
        assertTrue(at >= before && at <= System.currentTimeMillis(), "died at " + at);
        assertEquals("value", dead.getStringProperty("key"));
    }

    @Test
    @Needs(Feature.DEAD_LETTER_ANNOTATIONS)
    void reasonsCanBeChosen() throws Exception {
        Session session = session();
        send(session, 1);
        Queue dead = session.createQueue(Broker.DEAD_LETTERS);
        String here = "dead_letter_queue = '" + name() + "' AND dead_letter_time > 0";
        assertNothing(session.createConsumer(dead, here + " AND dead_letter_reason = 'attempts'"));
        String expired = here + " AND dead_letter_reason IN ('expired', 'overflow')";
        assertEquals("poison", text(session.createConsumer(dead, expired)));
    }

    @Test
    void afterItsTime() throws Exception {
        Session session = session();
        Message sent = send(session, 1);
        Message dead = next(deadLetters(session));
        assertEquals("poison", text(dead));
        assertEquals(sent.getJMSMessageID(), dead.getJMSMessageID());
        assertEquals(0, dead.getJMSExpiration(), "a dead letter does not expire");
    }

    @Test
    @Needs(Feature.DEAD_LETTER_ANNOTATIONS)
    void afterItsTimeWithTheReason() throws Exception {
        long before = System.currentTimeMillis();
        send(session(), 1);
        assertReason(next(deadLetters(session())), "expired", before);
    }

    @Test
    void expiredMessageOfDurableSubscription() throws Exception {
        Session client = connectAs(name()).createSession();
        Topic topic = topic(client);
        client.createDurableSubscriber(topic, "news").close();
        Message message = client.createTextMessage("poison");
        message.setJMSCorrelationID(name());
        MessageProducer producer = client.createProducer(topic);
        producer.setTimeToLive(1);
        producer.send(message);
        assertEquals("poison", text(deadLetters(session())));
        client.unsubscribe("news");
    }

    private void assertReason(Message dead, String reason, long before) {
        assertEquals(reason, String.valueOf(annotation(dead, "reason")));
        assertEquals(name(), String.valueOf(annotation(dead, "queue")));
        Object time = annotation(dead, "time");
        long at = time instanceof java.util.Date date ? date.getTime() : ((Number) time).longValue();
        assertTrue(at >= before && at <= System.currentTimeMillis(), "died at " + at);
    }

    private static Object annotation(Message message, String name) {
        var facade = ((JmsMessage) message).getFacade();
        return facade.getTracingAnnotation("x-opt-dead-letter-" + name);
    }
}
