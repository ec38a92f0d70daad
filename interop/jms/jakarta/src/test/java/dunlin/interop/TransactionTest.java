package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a transaction holds back, makes true at once, or undoes. */
class TransactionTest extends Scenario {
    private Session transacted() throws Exception {
        return session(Session.SESSION_TRANSACTED);
    }

    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void nothingIsSeenBeforeTheCommit(int mode) throws Exception {
        Session session = transacted();
        MessageConsumer other = session().createConsumer(queue(session));
        MessageProducer producer = session.createProducer(queue(session));
        producer.setDeliveryMode(mode);
        producer.send(session.createTextMessage("1"));
        producer.send(session.createTextMessage("2"));
        assertNothing(other);
        session.commit();
        assertEquals(List.of("1", "2"), texts(other, 2));
        assertNothing(other);
    }

    @Test
    void rollbackUndoesSentMessages() throws Exception {
        Session session = transacted();
        send(session, queue(session), "undone");
        session.rollback();
        send(session, queue(session), "done");
        session.commit();
        assertEquals(List.of("done"), left(queue(session)));
    }

    @Test
    void rollbackReturnsMessagesInOrder() throws Exception {
        Session session = transacted();
        Queue queue = queue(session);
        sendAside(queue, "1", "2", "3", "4");
        MessageConsumer consumer = session.createConsumer(queue);
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        session.rollback();
        for (String text : List.of("1", "2", "3", "4")) {
            Message message = next(consumer);
            assertEquals(text, text(message));
            boolean seen = text.compareTo("3") < 0;
            assertEquals(seen, message.getJMSRedelivered(), text);
            assertEquals(seen ? 2 : 1, message.getIntProperty("JMSXDeliveryCount"), text);
        }
        session.commit();
        assertEquals(List.of(), left(queue));
    }

    @Test
    void attemptsAreCountedOverRollbacks() throws Exception {
        Session session = transacted();
        sendAside(queue(session), "again");
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (int attempt = 1; attempt <= 6; attempt++) {
            Message message = next(consumer);
            assertEquals(attempt, message.getIntProperty("JMSXDeliveryCount"));
            assertEquals(attempt > 1, message.getJMSRedelivered());
            session.rollback();
        }
        next(consumer);
        session.commit();
        assertNothing(consumer);
    }

    @Test
    void transactionOverQueuesAndTopics() throws Exception {
        Session session = transacted();
        Queue source = queue(session);
        Queue target = session.createQueue(name() + "-target");
        Topic topic = topic(session);
        Session watching = session();
        MessageConsumer onTarget = watching.createConsumer(target);
        MessageConsumer onTopic = watching.createConsumer(topic);
        sendAside(source, "1", "2");
        MessageConsumer consumer = session.createConsumer(source);

        assertEquals("1", text(consumer));
        send(session, target, "undone");
        send(session, topic, "undone");
        session.rollback();
        assertNothing(onTarget);
        assertNothing(onTopic);

        assertEquals("1", text(consumer));
        send(session, target, "to the queue");
        send(session, topic, "to the topic");
        assertNothing(onTarget);
        assertNothing(onTopic);
        session.commit();
        assertEquals("to the queue", text(onTarget));
        assertEquals("to the topic", text(onTopic));
        assertNothing(onTarget);
        assertNothing(onTopic);
        session.close();
        assertEquals(List.of("2"), left(source));
    }

    @Test
    void transactionReceivesFromManyQueues() throws Exception {
        Session session = transacted();
        List<Queue> queues = new ArrayList<>();
        List<MessageConsumer> consumers = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            queues.add(session.createQueue(name() + number));
            sendAside(queues.get(number), "1", "2");
            consumers.add(session.createConsumer(queues.get(number)));
        }
        for (MessageConsumer consumer : consumers) {
            assertEquals("1", text(consumer));
        }
        session.rollback();
        for (MessageConsumer consumer : consumers) {
            assertEquals("1", text(consumer));
        }
        session.commit();
        session.close();
        for (Queue queue : queues) {
            assertEquals(List.of("2"), left(queue));
        }
    }

    @Test
    void sessionsHaveTransactionsOfTheirOwn() throws Exception {
        Connection connection = connect();
        Session one = connection.createSession(Session.SESSION_TRANSACTED);
        Session other = connection.createSession(Session.SESSION_TRANSACTED);
        Queue queue = queue(one);
        send(one, queue, "one");
        send(other, queue, "other");
        other.commit();
        assertEquals(List.of("other"), left(queue));
        one.rollback();
        send(one, queue, "one again");
        send(other, queue, "undone");
        one.commit();
        other.rollback();
        assertEquals(List.of("one again"), left(queue));
    }

    @Test
    void manyTransactionsOneAfterAnother() throws Exception {
        Session session = transacted();
        MessageProducer producer = session.createProducer(queue(session));
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (int number = 0; number < 100; number++) {
            producer.send(session.createTextMessage("m" + number));
            session.commit();
            assertEquals("m" + number, text(consumer));
            session.commit();
        }
        assertNothing(consumer);
    }

    @Test
    void transactionDoesNotReceiveItsOwnSends() throws Exception {
        Session session = transacted();
        MessageConsumer consumer = session.createConsumer(queue(session));
        send(session, queue(session), "1");
        assertNothing(consumer);
        session.commit();
        assertEquals("1", text(consumer));
    }

    @Test
    void emptyTransactionsEndWell() throws Exception {
        Session session = transacted();
        for (int count = 0; count < 20; count++) {
            session.commit();
            session.rollback();
        }
        send(session, queue(session), "1");
        session.commit();
        assertEquals(List.of("1"), left(queue(session)));
    }

    @Test
    void largeTransactions() throws Exception {
        int count = 10_000;
        Session session = transacted();
        Queue queue = queue(session);
        MessageConsumer other = session().createConsumer(queue);
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < count; number++) {
            producer.send(session.createTextMessage("m" + number));
        }
        assertNothing(other);
        session.commit();
        other.close();
        MessageConsumer consumer = session.createConsumer(queue);
        List<String> expected = IntStream.range(0, count).mapToObj(n -> "m" + n).toList();
        assertEquals(expected, texts(consumer, count));
        session.rollback();
        assertEquals(expected, texts(consumer, count));
        session.commit();
        assertNothing(consumer);
    }

    @Test
    void lostConnectionsTransactionIsUndone() throws Exception {
        Proxy proxy = closing(new Proxy());
        Session session = connect(Broker.factory(proxy.port()))
                .createSession(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        Queue target = session.createQueue(name() + "-target");
        sendAside(queue, "1");
        assertEquals("1", text(session.createConsumer(queue)));
        send(session, target, "undone");
        proxy.cut();
        assertEquals("1", text(session().createConsumer(queue)));
        assertEquals(List.of(), left(target));
    }

    @Test
    void closedSessionsTransactionIsUndone() throws Exception {
        Session session = transacted();
        Queue queue = queue(session);
        Queue target = session.createQueue(name() + "-target");
        sendAside(queue, "1");
        assertEquals("1", text(session.createConsumer(queue)));
        send(session, target, "undone");
        session.close();
        Message message = next(session().createConsumer(queue));
        assertEquals("1", text(message));
        assertTrue(message.getJMSRedelivered());
        assertEquals(List.of(), left(target));
    }

    @Test
    void transactionOutlivesProducersAndConsumers() throws Exception {
        Session session = transacted();
        Queue queue = queue(session);
        Queue target = session.createQueue(name() + "-target");
        sendAside(queue, "1", "2");
        try (MessageConsumer consumer = session.createConsumer(queue)) {
            assertEquals("1", text(consumer));
        }
        send(session, target, "sent");
        session.commit();
        assertEquals(List.of("sent"), left(target));
        assertEquals(List.of("2"), left(queue));
    }

    @Test
    void prioritiesHoldWithinATransaction() throws Exception {
        Session session = transacted();
        MessageProducer producer = session.createProducer(queue(session));
        for (int priority : new int[] {1, 9, 5}) {
            Message message = session.createTextMessage("p" + priority);
            producer.send(message, DeliveryMode.PERSISTENT, priority, 0);
        }
        session.commit();
        assertEquals(List.of("p9", "p5", "p1"), left(queue(session)));
    }

    @Test
    void expiredDeliveryDoesNotReturnOnRollback() throws Exception {
        Session session = transacted();
        MessageProducer producer = session.createProducer(queue(session));
        producer.setTimeToLive(2_000);
        producer.send(session.createTextMessage("short"));
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue(session));
        Message message = next(consumer);
        assertFalse(message.getJMSRedelivered());
        letPass(2_500);
        session.rollback();
        assertNothing(consumer);
    }

    @Test
    void delayedMessagesCountFromTheirSending() throws Exception {
        Session session = transacted();
        MessageConsumer other = session().createConsumer(queue(session));
        MessageProducer producer = session.createProducer(queue(session));
        producer.setDeliveryDelay(300);
        producer.send(session.createTextMessage("later"));
        session.commit();
        Message message = next(other);
        assertTrue(System.currentTimeMillis() >= message.getJMSDeliveryTime());
    }
}
