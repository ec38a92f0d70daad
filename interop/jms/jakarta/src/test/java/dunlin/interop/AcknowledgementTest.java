package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What an acknowledgement covers, and what comes back without one. */
class AcknowledgementTest extends Scenario {
    /** The client's own mode: each message by itself. */
    private static final int INDIVIDUAL_ACKNOWLEDGE = 101;

    @ParameterizedTest
    @ValueSource(ints = {Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE})
    void receivingIsAcknowledging(int mode) throws Exception {
        Connection connection = connect();
        Session session = connection.createSession(mode);
        Queue queue = queue(session);
        send(session, queue, "1", "2", "3", "4");
        assertEquals(List.of("1", "2"), texts(session.createConsumer(queue), 2));
        connection.close();
        assertEquals(List.of("3", "4"), left(queue));
    }

    @Test
    void clientAcknowledgementCoversTheSession() throws Exception {
        Connection connection = connect();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        Queue other = session.createQueue(name() + "-other");
        send(session, queue, "1", "2", "3");
        send(session, other, "a", "b");
        MessageConsumer consumer = session.createConsumer(queue);
        Message first = next(consumer);
        next(consumer);
        next(session.createConsumer(other));
        first.acknowledge();
        connection.close();
        assertEquals(List.of("3"), left(queue));
        assertEquals(List.of("b"), left(other));
    }

    @Test
    void unacknowledgedReturnsWhenSessionCloses() throws Exception {
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1", "2", "3", "4");
        MessageConsumer consumer = session.createConsumer(queue);
        next(consumer).acknowledge();
        assertEquals("2", text(consumer));
        assertEquals("3", text(consumer));
        session.close();

        MessageConsumer again = session().createConsumer(queue);
        for (String text : List.of("2", "3", "4")) {
            Message message = next(again);
            assertEquals(text, text(message));
            boolean seen = !text.equals("4");
            assertEquals(seen, message.getJMSRedelivered(), text);
            assertEquals(seen ? 2 : 1, message.getIntProperty("JMSXDeliveryCount"), text);
        }
        assertNothing(again);
    }

    @Test
    void unacknowledgedReturnsWhenConnectionCloses() throws Exception {
        Connection connection = connect();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1", "2");
        assertEquals("1", text(session.createConsumer(queue)));
        connection.close();
        assertEquals(List.of("1", "2"), left(queue));
    }

    @Test
    void unacknowledgedReturnsWhenConnectionIsLost() throws Exception {
        Proxy proxy = closing(new Proxy());
        Session session = connect(Broker.factory(proxy.port()))
                .createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1", "2", "3");
        MessageConsumer consumer = session.createConsumer(queue);
        next(consumer).acknowledge();
        assertEquals("2", text(consumer));
        // The acknowledgement has no answer: this one follows it on the way, and has.
        send(session, session.createQueue(name() + "-other"), "done");
        proxy.cut();

        MessageConsumer again = session().createConsumer(queue);
        assertEquals(List.of("2", "3"), texts(again, 2));
        assertNothing(again);
    }

    @Test
    @Needs(Feature.COUNTED_LOSSES)
    void lostConnectionsDeliveryIsCounted() throws Exception {
        Proxy proxy = closing(new Proxy());
        Session session = connect(Broker.factory(proxy.port()))
                .createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1");
        assertEquals("1", text(session.createConsumer(queue)));
        proxy.cut();
        Message message = next(session().createConsumer(queue));
        assertTrue(message.getJMSRedelivered());
        assertEquals(2, message.getIntProperty("JMSXDeliveryCount"));
    }

    @Test
    void prefetchedMessageIsNotRedelivered() throws Exception {
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1", "2", "3");
        MessageConsumer consumer = session.createConsumer(queue);
        next(consumer).acknowledge();
        consumer.close();
        MessageConsumer again = session.createConsumer(queue);
        for (String text : List.of("2", "3")) {
            Message message = next(again);
            assertEquals(text, text(message));
            assertFalse(message.getJMSRedelivered());
            assertEquals(1, message.getIntProperty("JMSXDeliveryCount"));
        }
    }

    @Test
    void closedConsumersMessageCanBeAcknowledged() throws Exception {
        Connection connection = connect();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1", "2");
        MessageConsumer consumer = session.createConsumer(queue);
        Message message = next(consumer);
        consumer.close();
        assertEquals(List.of("2"), left(queue));
        message.acknowledge();
        connection.close();
        assertEquals(List.of(), left(queue));
    }

    @Test
    void eachMessageByItself() throws Exception {
        Connection connection = connect();
        Session session = connection.createSession(INDIVIDUAL_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1", "2", "3", "4", "5");
        MessageConsumer consumer = session.createConsumer(queue);
        List<Message> messages = new ArrayList<>();
        for (int count = 0; count < 5; count++) {
            messages.add(next(consumer));
        }
        messages.get(1).acknowledge();
        messages.get(4).acknowledge();
        connection.close();
        assertEquals(List.of("1", "3", "4"), left(queue));
    }

    @ParameterizedTest
    @ValueSource(ints = {Session.CLIENT_ACKNOWLEDGE, INDIVIDUAL_ACKNOWLEDGE})
    void recoverDeliversAgainInOrder(int mode) throws Exception {
        Session session = session(mode);
        Queue queue = queue(session);
        send(session, queue, "1", "2", "3", "4", "5");
        MessageConsumer consumer = session.createConsumer(queue);
        next(consumer).acknowledge();
        assertEquals(List.of("2", "3"), texts(consumer, 2));
        session.recover();
        for (String text : List.of("2", "3", "4", "5")) {
            Message message = next(consumer);
            assertEquals(text, text(message));
            boolean seen = text.compareTo("4") < 0;
            assertEquals(seen, message.getJMSRedelivered(), text);
            assertEquals(seen ? 2 : 1, message.getIntProperty("JMSXDeliveryCount"), text);
            message.acknowledge();
        }
        session.close();
        assertEquals(List.of(), left(queue));
    }

    @Test
    void attemptsAreCounted() throws Exception {
        Queue queue = queue(session());
        sendAside(queue, "again");
        for (int attempt = 1; attempt <= 5; attempt++) {
            Session session = session(Session.CLIENT_ACKNOWLEDGE);
            Message message = next(session.createConsumer(queue));
            assertEquals(attempt, message.getIntProperty("JMSXDeliveryCount"));
            assertEquals(attempt > 1, message.getJMSRedelivered());
            session.close();
        }
    }

    @Test
    void failingListenerSeesTheMessageAgain() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        BlockingQueue<Message> seen = new LinkedBlockingQueue<>();
        AtomicBoolean fails = new AtomicBoolean(true);
        session.createConsumer(queue).setMessageListener(message -> {
            seen.add(message);
            if (fails.getAndSet(false)) {
                throw new IllegalStateException("the listener fails, as it should");
            }
        });
        sendAside(queue, "again");
        assertEquals("again", text(seen.poll(WAIT, TimeUnit.MILLISECONDS)));
        assertEquals("again", text(seen.poll(WAIT, TimeUnit.MILLISECONDS)));
        session.close();
        assertEquals(List.of(), left(queue));
    }

    @Test
    void presettledDeliveriesAreGoneAtOnce() throws Exception {
        Connection connection = connect("jms.presettlePolicy.presettleConsumers=true",
                "jms.prefetchPolicy.all=0");
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        send(session, queue, "1", "2");
        assertEquals("1", text(session.createConsumer(queue)));
        connection.close();
        assertEquals(List.of("2"), left(queue));
    }
}
