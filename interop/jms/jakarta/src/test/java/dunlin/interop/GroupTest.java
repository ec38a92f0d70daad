package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Messages of one group go to one consumer at a time, in their order. */
class GroupTest extends Scenario {
    /** The value of JMSXGroupSeq with which a group ends. */
    private static final int LAST = -1;

    private static void send(Session session, Queue to, String group, String... texts) throws Exception {
        try (MessageProducer producer = session.createProducer(to)) {
            int sequence = 0;
            for (String text : texts) {
                TextMessage message = session.createTextMessage(text);
                message.setStringProperty("JMSXGroupID", group);
                message.setIntProperty("JMSXGroupSeq", text.equals("last") ? LAST : ++sequence);
                producer.send(message);
            }
        }
    }

    /** A consumer that has the group, since it got its first message. */
    private MessageConsumer owner(Session session, Queue queue) throws Exception {
        MessageConsumer consumer = session.createConsumer(queue);
        send(session(), queue, "x", "first");
        assertEquals("first", text(consumer));
        return consumer;
    }

    @Test
    void groupStaysWithItsConsumer() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        MessageConsumer owner = owner(session, queue);
        MessageConsumer other = session().createConsumer(queue);
        send(session(), queue, "x", "1", "2", "3");
        assertEquals(List.of("1", "2", "3"), texts(owner, 3));
        send(session(), queue, "x", "4");
        assertEquals("4", text(owner));
        assertNothing(other);
    }

    @Test
    void groupPassesOnWhenItsConsumerCloses() throws Exception {
        Connection connection = connect();
        Session session = connection.createSession();
        Queue queue = queue(session);
        MessageConsumer owner = owner(session, queue);
        MessageConsumer other = session().createConsumer(queue);
        send(session(), queue, "x", "1");
        assertEquals("1", text(owner));
        owner.close();
        send(session(), queue, "x", "2", "3");
        assertEquals(List.of("2", "3"), texts(other, 2));
    }

    @Test
    void groupPassesOnWhenConnectionIsLost() throws Exception {
        Connection connection = connect();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = queue(session);
        MessageConsumer owner = owner(session, queue);
        send(session(), queue, "x", "1", "2");
        assertEquals(List.of("1", "2"), texts(owner, 2));
        MessageConsumer other = session().createConsumer(queue);
        send(session(), queue, "x", "3");
        connection.close();
        assertEquals(List.of("first", "1", "2", "3"), texts(other, 4));
    }

    @Test
    void groupEndsWithItsLastMessage() throws Exception {
        Session session = connect("jms.prefetchPolicy.all=1").createSession();
        Queue queue = queue(session);
        MessageConsumer owner = owner(session, queue);
        send(session(), queue, "x", "last");
        assertEquals("last", text(owner));
        // Fetched ahead by the former owner, which takes no more now.
        sendAside(queue, "free");
        MessageConsumer other = session().createConsumer(queue);
        send(session(), queue, "x", "new", "newer");
        assertEquals(List.of("new", "newer"), texts(other, 2));
        assertEquals("free", text(owner));
    }

    @Test
    void groupStaysInOrderOverRollbacks() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        send(session(), queue, "x", "1", "2", "3");
        MessageConsumer owner = session.createConsumer(queue);
        assertEquals(List.of("1", "2"), texts(owner, 2));
        MessageConsumer other = session().createConsumer(queue);
        session.rollback();
        assertNothing(other);
        assertEquals(List.of("1", "2", "3"), texts(owner, 3));
        session.commit();
        assertNothing(other);
    }

    @Test
    void groupIsTold() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        send(session, queue, "x", "1");
        Message message = next(session.createConsumer(queue));
        assertEquals("x", message.getStringProperty("JMSXGroupID"));
        assertEquals(1, message.getIntProperty("JMSXGroupSeq"));
    }
}
