package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Subscriptions that stay when their consumer goes. */
class DurableSubscriptionTest extends Scenario {
    private Session client(String id) throws Exception {
        return connectAs(id).createSession();
    }

    private static void sendColours(Session session, Topic topic, String... colours)
            throws JMSException {
        MessageProducer producer = session.createProducer(topic);
        for (String colour : colours) {
            TextMessage message = session.createTextMessage(colour);
            message.setStringProperty("colour", colour);
            producer.send(message);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void subscriptionKeepsMessagesMeanwhile(int mode) throws Exception {
        Topic topic;
        try (Connection connection = connectAs(name())) {
            Session session = connection.createSession();
            topic = topic(session);
            MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
            sendAside(topic, "1");
            assertEquals("1", text(consumer));
        }
        Session aside = session();
        MessageProducer producer = aside.createProducer(topic);
        producer.setDeliveryMode(mode);
        producer.send(aside.createTextMessage("2"));
        producer.send(aside.createTextMessage("3"));

        Session session = client(name());
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
        assertEquals(List.of("2", "3"), texts(consumer, 2));
        assertNothing(consumer);
        consumer.close();
        sendAside(topic, "4");
        consumer = session.createDurableConsumer(topic, "news");
        assertEquals(List.of("4"), texts(consumer, 1));
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void unacknowledgedMessagesStay() throws Exception {
        Connection connection = connectAs(name());
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Topic topic = topic(session);
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
        sendAside(topic, "1", "2", "3");
        next(consumer).acknowledge();
        assertEquals("2", text(consumer));
        connection.close();

        session = client(name());
        consumer = session.createDurableSubscriber(topic, "news");
        assertEquals(List.of("2", "3"), texts(consumer, 2));
        assertNothing(consumer);
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void anotherSelectorBeginsAnew() throws Exception {
        Session session = client(name());
        Topic topic = topic(session);
        session.createDurableSubscriber(topic, "news", "colour = 'red'", false).close();
        sendColours(session, topic, "red", "blue");
        MessageConsumer consumer =
                session.createDurableSubscriber(topic, "news", "colour = 'blue'", false);
        assertNothing(consumer);
        sendColours(session, topic, "red", "blue");
        assertEquals(List.of("blue"), texts(consumer, 1));
        assertNothing(consumer);
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void anotherTopicBeginsAnew() throws Exception {
        Session session = client(name());
        Topic topic = topic(session);
        Topic other = session.createTopic(name() + "-other");
        session.createDurableSubscriber(topic, "news").close();
        send(session, topic, "old");
        MessageConsumer consumer = session.createDurableSubscriber(other, "news");
        assertNothing(consumer);
        send(session, topic, "old");
        send(session, other, "new");
        assertEquals(List.of("new"), texts(consumer, 1));
        assertNothing(consumer);
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void theSameSelectorGoesOn() throws Exception {
        Session session = client(name());
        Topic topic = topic(session);
        session.createDurableSubscriber(topic, "news", "colour = 'red'", false).close();
        sendColours(session, topic, "red", "blue", "red");
        MessageConsumer consumer =
                session.createDurableSubscriber(topic, "news", "colour = 'red'", false);
        assertEquals(List.of("red", "red"), texts(consumer, 2));
        assertNothing(consumer);
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void namesBelongToTheirClient() throws Exception {
        Session one = client(name() + "-one");
        Session other = client(name() + "-other");
        Topic topic = topic(one);
        MessageConsumer first = one.createDurableSubscriber(topic, "news");
        MessageConsumer second = other.createDurableSubscriber(topic, "news");
        send(one, topic, "1");
        assertEquals("1", text(first));
        assertEquals("1", text(second));
        first.close();
        one.unsubscribe("news");
        send(one, topic, "2");
        assertEquals("2", text(second));
        second.close();
        other.unsubscribe("news");
    }

    @Test
    void subscriptionHasOneConsumer() throws Exception {
        Connection connection = connectAs(name());
        Session session = connection.createSession();
        Topic topic = topic(session);
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
        Session other = connection.createSession();
        assertThrows(JMSException.class, () -> other.createDurableSubscriber(topic, "news"));
        send(session, topic, "1");
        assertEquals("1", text(consumer));
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void unsubscribingForgets() throws Exception {
        Session session = client(name());
        Topic topic = topic(session);
        session.createDurableSubscriber(topic, "news").close();
        send(session, topic, "1");
        session.unsubscribe("news");
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
        assertNothing(consumer);
        send(session, topic, "2");
        assertEquals("2", text(consumer));
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void unknownSubscriptionCannotBeUnsubscribed() throws Exception {
        Session session = client(name());
        assertThrows(InvalidDestinationException.class, () -> session.unsubscribe("nothing"));
    }

    @Test
    void subscriptionInUseCannotBeUnsubscribed() throws Exception {
        Session session = client(name());
        Topic topic = topic(session);
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
        assertThrows(JMSException.class, () -> session.unsubscribe("news"));
        send(session, topic, "1");
        assertEquals("1", text(consumer));
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void noLocalHolds() throws Exception {
        Session session = client(name());
        Topic topic = topic(session);
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news", null, true);
        send(session, topic, "own");
        sendAside(topic, "foreign");
        assertEquals(List.of("foreign"), texts(consumer, 1));
        assertNothing(consumer);
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void subscriptionOutlivesALostConnection() throws Exception {
        Proxy proxy = closing(new Proxy());
        Session session = connect(Broker.factory(proxy.port(), "jms.clientID=" + name()))
                .createSession(Session.CLIENT_ACKNOWLEDGE);
        Topic topic = topic(session);
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
        sendAside(topic, "1");
        assertEquals("1", text(consumer));
        proxy.cut();
        sendAside(topic, "2");
        session = again();
        consumer = session.createDurableSubscriber(topic, "news");
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        consumer.close();
        session.unsubscribe("news");
    }

    @Test
    void secondClientOfOneNameWaits() throws Exception {
        Connection first = connectAs(name());
        Session session = first.createSession(Session.CLIENT_ACKNOWLEDGE);
        Topic topic = topic(session);
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
        sendAside(topic, "1");
        assertEquals("1", text(consumer));
        assertThrows(InvalidClientIDException.class, () -> client(name()));
        sendAside(topic, "2");
        assertEquals("2", text(consumer));
        first.close();
        session = again();
        consumer = session.createDurableSubscriber(topic, "news");
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        consumer.close();
        session.unsubscribe("news");
    }

    /** Connects as the same client, as soon as the broker knows that the old one is gone. */
    private Session again() throws Exception {
        long end = System.currentTimeMillis() + WAIT;
        while (true) {
            try {
                return client(name());
            } catch (InvalidClientIDException error) {
                if (System.currentTimeMillis() > end) {
                    throw error;
                }
            }
        }
    }

    @Test
    void transactionsReachIt() throws Exception {
        Connection connection = connectAs(name());
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        Topic topic = topic(session);
        MessageConsumer consumer = session.createDurableSubscriber(topic, "news");
        send(session, topic, "undone");
        session.rollback();
        send(session, topic, "1", "2");
        session.commit();
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        session.rollback();
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        session.commit();
        assertNothing(consumer);
        consumer.close();
        session.unsubscribe("news");
    }
}
