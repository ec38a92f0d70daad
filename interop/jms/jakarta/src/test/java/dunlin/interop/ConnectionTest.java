package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Connections: names of clients, ways to log in, many of them, lost ones. */
class ConnectionTest extends Scenario {
    @Test
    void clientIdIsUsedOnce() throws Exception {
        Connection first = connectAs(name());
        assertEquals(name(), first.getClientID());
        assertThrows(InvalidClientIDException.class, () -> connectAs(name()));
        Connection late = closing(Broker.factory().createConnection());
        assertThrows(InvalidClientIDException.class, () -> late.setClientID(name()));
        Session session = first.createSession();
        send(session, queue(session), "the first is still there");
        first.close();
        assertEquals(name(), connectAs(name()).getClientID());
    }

    @Test
    void clientIdCanBeSetFirst() throws Exception {
        Connection connection = closing(Broker.factory().createConnection());
        connection.setClientID(name());
        assertEquals(name(), connection.getClientID());
        connection.start();
        assertThrows(JMSException.class, () -> connection.setClientID(name() + "-other"));
    }

    @Test
    void theBrokerSaysWhoItIs() throws Exception {
        var about = connect().getMetaData();
        assertTrue(about.getJMSMajorVersion() >= 2);
        assertNotNull(about.getJMSProviderName());
    }

    @ParameterizedTest
    @ValueSource(strings = {"amqp.saslMechanisms=ANONYMOUS", "amqp.saslMechanisms=PLAIN",
        "amqp.saslLayer=false"})
    void everyWayToLogIn(String option) throws Exception {
        Connection connection = closing(Broker.factory(option).createConnection("guest", "guest"));
        connection.start();
        Session session = connection.createSession();
        send(session, queue(session), "hello");
        assertEquals("hello", text(session.createConsumer(queue(session))));
    }

    @Test
    void manyConnectionsOneAfterAnother() throws Exception {
        for (int number = 0; number < 1_000; number++) {
            try (Connection connection = Broker.factory().createConnection()) {
                connection.start();
                if (number % 10 == 0) {
                    Session session = connection.createSession();
                    send(session, queue(session), "m" + number);
                    assertEquals("m" + number, text(session.createConsumer(queue(session))));
                }
            }
        }
    }

    @Test
    void manyConnectionsAtOnce() throws Exception {
        List<Session> sessions = new ArrayList<>();
        for (int number = 0; number < 100; number++) {
            sessions.add(session());
        }
        for (Session session : sessions) {
            send(session, queue(session), "hello");
        }
        assertEquals(sessions.size(), left(queue(sessions.get(0))).size());
    }

    @Test
    void lostConnectionIsNoticed() throws Exception {
        Proxy proxy = closing(new Proxy());
        Connection connection = connect(Broker.factory(proxy.port()));
        BlockingQueue<JMSException> heard = new LinkedBlockingQueue<>();
        connection.setExceptionListener(heard::add);
        proxy.cut();
        assertNotNull(heard.poll(WAIT, TimeUnit.MILLISECONDS));
        assertThrows(JMSException.class, connection::createSession);
    }

    @Test
    void quietConnectionStays() throws Exception {
        // The client asks for a sign of life within half of this, and gives up without one.
        Connection connection = connect("amqp.idleTimeout=1000");
        BlockingQueue<JMSException> heard = new LinkedBlockingQueue<>();
        connection.setExceptionListener(heard::add);
        letPass(3_000);
        assertEquals(null, heard.poll());
        Session session = connection.createSession();
        send(session, queue(session), "still there");
        var message = next(session.createConsumer(queue(session)));
        assertEquals("still there", assertInstanceOf(TextMessage.class, message).getText());
    }

    @Test
    void failoverGoesOnWhereItWas() throws Exception {
        Proxy proxy = closing(new Proxy());
        Connection connection = connect(Broker.failover(proxy.port()));
        Session session = connection.createSession();
        var consumer = session.createConsumer(queue(session));
        send(session, queue(session), "1");
        assertEquals("1", text(consumer));
        // The acknowledgement has no answer: this one follows it on the way, and has.
        send(session, session.createQueue(name() + "-other"), "done");
        proxy.cut();
        send(session, queue(session), "2");
        assertEquals("2", text(consumer));
    }
}
