package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.TransactionRolledBackException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** State that changes in the commit in which messages are received and sent. */
@Needs(Feature.TABLES)
class TableTest extends Scenario {
    private Queue table(Session session) throws JMSException {
        return session.createQueue("table://" + name() + "-table");
    }

    private TextMessage step(Session session, String key, String operation, String body)
            throws JMSException {
        TextMessage message = session.createTextMessage(body);
        message.setJMSType(key);
        if (operation != null) {
            message.setStringProperty("dunlin_op", operation);
        }
        return message;
    }

    /** The key has this value, or else the commit fails; null: it is not there. */
    private void assertValue(String key, String value) throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(table(session));
        String operation = value == null ? "expect-absent" : "expect";
        producer.send(step(session, key, operation, value == null ? "" : value));
        session.commit();
    }

    @Test
    void stepsAloneAreDoneAtOnce() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(table(session));
        assertValue("17", null);
        producer.send(step(session, "17", null, "100"));
        assertValue("17", "100");
        producer.send(step(session, "17", "add", "-5"));
        assertValue("17", "95");
        producer.send(step(session, "17", "delete", ""));
        assertValue("17", null);
    }

    /** As Spring sends: the destination stands in the message. */
    @Test
    void anonymousProducersReachTables() throws Exception {
        Session session = session();
        session.createProducer(null).send(table(session), step(session, "17", "put", "1"));
        assertValue("17", "1");
    }

    @Test
    void receiveSendAndStateAreOneCommit() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue requests = queue(session);
        Queue history = session.createQueue(name() + "-history");
        sendAside(requests, "17 to 18: 30");
        MessageConsumer consumer = session.createConsumer(requests);
        MessageProducer state = session.createProducer(table(session));
        assertEquals("17 to 18: 30", text(consumer));
        state.send(step(session, "17", "add", "-30"));
        state.send(step(session, "18", "add", "30"));
        send(session, history, "moved");
        session.rollback();
        assertValue("17", null);
        assertEquals("17 to 18: 30", text(consumer));
        state.send(step(session, "17", "add", "-30"));
        state.send(step(session, "18", "add", "30"));
        send(session, history, "moved");
        session.commit();
        assertValue("17", "-30");
        assertValue("18", "30");
        assertEquals(List.of("moved"), left(history));
        assertEquals(List.of(), left(requests));
    }

    @Test
    void conflictUndoesTheCommit() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue requests = queue(session);
        Queue history = session.createQueue(name() + "-history");
        sendAside(requests, "request");
        MessageConsumer consumer = session.createConsumer(requests);
        MessageProducer state = session.createProducer(table(session));
        assertEquals("request", text(consumer));
        TextMessage stale = step(session, "17", "put", "2");
        stale.setStringProperty("dunlin_was", "1");
        state.send(stale);
        send(session, history, "never");
        JMSException failure =
                assertThrows(TransactionRolledBackException.class, session::commit);
        assertTrue(failure.getMessage().contains("read it again"), failure.getMessage());
        assertEquals("request", text(consumer), "it comes again");
        state.send(step(session, "17", "put", "1"));
        session.commit();
        assertValue("17", "1");
        assertEquals(List.of(), left(history));
    }

    @Test
    void refusedStepsSayWhy() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(table(session));
        producer.send(step(session, "17", "put", "x"));
        for (String[] wrong : List.of(
                new String[] {"17", "add", "1", "no integer"},
                new String[] {"17", "add", "x", "integer of 64 bits"},
                new String[] {"17", "incr", "1", "put, add, delete"},
                new String[] {"17", "expect", "x", "transacted session"},
                new String[] {null, "put", "1", "JMSType"})) {
            JMSException failure = assertThrows(
                    JMSException.class,
                    () -> producer.send(step(session, wrong[0], wrong[1], wrong[2])));
            assertTrue(failure.getMessage().contains(wrong[3]), failure.getMessage());
        }
        JMSException failure = assertThrows(
                JMSException.class, () -> session.createConsumer(table(session)));
        assertTrue(failure.getMessage().contains("GET /tables/NAME"), failure.getMessage());
        assertValue("17", "x");
    }
}
