package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Queues and topics that end with their connection. */
class TemporaryDestinationTest extends Scenario {
    private static Destination temporary(Session session, boolean topic) throws JMSException {
        return topic ? session.createTemporaryTopic() : session.createTemporaryQueue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void requestAndReply(boolean topic) throws Exception {
        Session client = session();
        Session server = session();
        Queue requests = queue(client);
        MessageConsumer serving = server.createConsumer(requests);
        Destination replies = temporary(client, topic);
        MessageConsumer waiting = client.createConsumer(replies);
        for (int number = 0; number < 20; number++) {
            Message request = client.createTextMessage("ask " + number);
            request.setJMSReplyTo(replies);
            client.createProducer(requests).send(request);

            Message asked = next(serving);
            Message answer = server.createTextMessage("answer to " + text(asked));
            answer.setJMSCorrelationID(asked.getJMSMessageID());
            server.createProducer(null).send(asked.getJMSReplyTo(), answer);

            Message answered = next(waiting);
            assertEquals("answer to ask " + number, text(answered));
            assertEquals(request.getJMSMessageID(), answered.getJMSCorrelationID());
            assertEquals(replies, answered.getJMSDestination());
        }
    }

    @Test
    void temporaryDestinationHasAName() throws Exception {
        Session session = session();
        assertNotEquals(session.createTemporaryQueue().getQueueName(),
                session.createTemporaryQueue().getQueueName());
        assertNotEquals(session.createTemporaryTopic().getTopicName(),
                session.createTemporaryTopic().getTopicName());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void temporaryQueueIsConsumedByItsConnection(boolean topic) throws Exception {
        Destination temporary = temporary(session(), topic);
        Session other = session();
        assertThrows(JMSException.class, () -> other.createConsumer(temporary));
    }

    /** The client knows temporary destinations and refuses by itself; a name it leaves alone. */
    @Test
    @Needs(Feature.GUARDED_TEMPORARY_DESTINATIONS)
    void othersOnlySendToTemporaryQueue() throws Exception {
        Session session = session();
        TemporaryQueue temporary = session.createTemporaryQueue();
        Session other = session();
        Queue byName = other.createQueue(temporary.getQueueName());
        assertThrows(JMSException.class, () -> other.createConsumer(byName));
        send(other, byName, "an answer");
        assertEquals("an answer", text(session.createConsumer(temporary)));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void temporaryDestinationInUseStays(boolean topic) throws Exception {
        Session session = session();
        Destination temporary = temporary(session, topic);
        MessageConsumer consumer = session.createConsumer(temporary);
        assertThrows(JMSException.class, () -> delete(temporary));
        send(session, temporary, "still there");
        assertEquals("still there", text(consumer));
        consumer.close();
        delete(temporary);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @Needs(Feature.FINAL_DELETION)
    void deletedTemporaryDestinationIsGone(boolean topic) throws Exception {
        Session session = session();
        Destination temporary = temporary(session, topic);
        delete(temporary);
        assertThrows(JMSException.class, () -> session.createConsumer(temporary));
        Session other = session();
        assertThrows(JMSException.class, () -> send(other, temporary, "too late"));
    }

    private static void delete(Destination temporary) throws JMSException {
        if (temporary instanceof TemporaryQueue queue) {
            queue.delete();
        } else {
            ((TemporaryTopic) temporary).delete();
        }
    }

    @Test
    void temporaryQueueEndsWithItsConnection() throws Exception {
        Session other = session();
        Connection connection = connect();
        TemporaryQueue temporary = connection.createSession().createTemporaryQueue();
        send(other, temporary, "heard");
        connection.close();
        assertThrows(JMSException.class, () -> send(other, temporary, "too late"));
    }

    @Test
    void temporaryQueueOutlivesItsSession() throws Exception {
        Connection connection = connect();
        Session first = connection.createSession();
        TemporaryQueue temporary = first.createTemporaryQueue();
        send(first, temporary, "kept");
        first.close();
        Session second = connection.createSession();
        assertEquals("kept", text(second.createConsumer(temporary)));
    }

    @Test
    void transactionsReachIt() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        TemporaryQueue temporary = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(temporary);
        send(session, temporary, "undone");
        session.rollback();
        send(session, temporary, "done");
        assertNothing(consumer);
        session.commit();
        assertEquals("done", text(consumer));
        session.commit();
    }
}
