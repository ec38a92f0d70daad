package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Topics and the subscriptions that last as long as their consumer. */
class TopicTest extends Scenario {
    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void everySubscriberGetsEveryMessage(int mode) throws Exception {
        Session session = session();
        Topic topic = topic(session);
        List<MessageConsumer> subscribers = List.of(session.createConsumer(topic),
                session.createConsumer(topic), session().createConsumer(topic));
        MessageProducer producer = session.createProducer(topic);
        producer.setDeliveryMode(mode);
        producer.send(session.createTextMessage("1"));
        producer.send(session.createTextMessage("2"));
        for (MessageConsumer subscriber : subscribers) {
            assertEquals(List.of("1", "2"), texts(subscriber, 2));
            assertNothing(subscriber);
        }
    }

    @Test
    void subscriberGetsLaterMessages() throws Exception {
        Session session = session();
        Topic topic = topic(session);
        send(session, topic, "nobody hears");
        MessageConsumer first = session.createConsumer(topic);
        send(session, topic, "one hears");
        MessageConsumer second = session.createConsumer(topic);
        send(session, topic, "both hear");
        assertEquals(List.of("one hears", "both hear"), texts(first, 2));
        assertEquals(List.of("both hear"), texts(second, 1));
        first.close();
        send(session, topic, "one is gone");
        assertEquals(List.of("one is gone"), texts(second, 1));
        assertNothing(session.createConsumer(topic));
    }

    @Test
    void subscriberWithoutCreditMissesNothing() throws Exception {
        Session session = connect("jms.prefetchPolicy.all=0").createSession();
        MessageConsumer consumer = session.createConsumer(topic(session));
        send(session, topic(session), "1", "2", "3");
        assertEquals(List.of("1", "2", "3"), texts(consumer, 3));
        assertNothing(consumer);
    }

    @Test
    void prioritiesHold() throws Exception {
        Session session = connect("jms.prefetchPolicy.all=0").createSession();
        MessageConsumer consumer = session.createConsumer(topic(session));
        MessageProducer producer = session.createProducer(topic(session));
        for (int priority : new int[] {2, 8, 4}) {
            producer.send(session.createTextMessage("p" + priority), DeliveryMode.PERSISTENT,
                    priority, 0);
        }
        assertEquals(List.of("p8", "p4", "p2"), texts(consumer, 3));
    }

    @Test
    void noLocalOmitsOwnMessages() throws Exception {
        Connection connection = connectAs(name());
        Session session = connection.createSession();
        Topic topic = topic(session);
        MessageConsumer consumer = session.createConsumer(topic, null, true);
        MessageConsumer all = session.createConsumer(topic, null, false);
        send(session, topic, "own");
        sendAside(topic, "foreign");
        assertEquals(List.of("foreign"), texts(consumer, 1));
        assertNothing(consumer);
        assertEquals(List.of("own", "foreign"), texts(all, 2));
    }

    @Test
    void selectorsChoose() throws Exception {
        Session session = session();
        Topic topic = topic(session);
        MessageConsumer red = session.createConsumer(topic, "colour = 'red'");
        MessageConsumer blue = session.createConsumer(topic, "colour = 'blue'");
        MessageProducer producer = session.createProducer(topic);
        for (String colour : List.of("red", "blue", "green", "red")) {
            var message = session.createTextMessage(colour);
            message.setStringProperty("colour", colour);
            producer.send(message);
        }
        assertEquals(List.of("red", "red"), texts(red, 2));
        assertEquals(List.of("blue"), texts(blue, 1));
        assertNothing(red);
        assertNothing(blue);
    }

    @Test
    void unacknowledgedIsDeliveredAgain() throws Exception {
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(topic(session));
        send(session, topic(session), "1", "2");
        assertEquals("1", text(consumer));
        session.recover();
        assertEquals(List.of("1", "2"), texts(consumer, 2));
    }

    @Test
    void transactedSubscribers() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(topic(session));
        sendAside(topic(session), "1", "2");
        assertEquals("1", text(consumer));
        session.rollback();
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        session.commit();
        assertNothing(consumer);
    }
}
