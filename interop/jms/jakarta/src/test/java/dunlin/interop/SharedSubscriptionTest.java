package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Subscriptions that several consumers share, durable or not, with client names and without. */
class SharedSubscriptionTest extends Scenario {
    private static final String[] TEXTS =
            IntStream.range(100, 200).mapToObj(Integer::toString).toArray(String[]::new);

    private MessageConsumer open(Session session, boolean durable) throws JMSException {
        return durable
                ? session.createSharedDurableConsumer(topic(session), name() + "-share")
                : session.createSharedConsumer(topic(session), name() + "-share");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void messageGoesToOneSharer(boolean durable) throws Exception {
        Session one = session();
        Session other = session();
        MessageConsumer first = open(one, durable);
        MessageConsumer second = open(other, durable);
        MessageConsumer alone = session().createConsumer(topic(one));
        sendAside(topic(one), TEXTS);
        List<String> all = rest(first);
        int share = all.size();
        all.addAll(rest(second));
        assertTrue(share > 0 && share < TEXTS.length, share + " of " + TEXTS.length);
        assertEquals(TEXTS.length, all.size());
        assertEquals(new TreeSet<>(List.of(TEXTS)), new TreeSet<>(all));
        assertEquals(List.of(TEXTS), texts(alone, TEXTS.length));
        first.close();
        second.close();
        if (durable) {
            one.unsubscribe(name() + "-share");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void sharersOfOneNamedClient(boolean durable) throws Exception {
        Connection connection = connectAs(name());
        Session session = connection.createSession();
        List<MessageConsumer> consumers = List.of(open(session, durable), open(session, durable),
                open(connection.createSession(), durable));
        sendAside(topic(session), TEXTS);
        List<String> all = new java.util.ArrayList<>();
        for (MessageConsumer consumer : consumers) {
            all.addAll(rest(consumer));
            consumer.close();
        }
        assertEquals(TEXTS.length, all.size());
        assertEquals(new TreeSet<>(List.of(TEXTS)), new TreeSet<>(all));
        if (durable) {
            session.unsubscribe(name() + "-share");
        }
    }

    @Test
    void durableSharedKeepsMessagesMeanwhile() throws Exception {
        Topic topic;
        try (Connection connection = connect()) {
            Session session = connection.createSession();
            topic = topic(session);
            open(session, true).close();
        }
        sendAside(topic, "1", "2");
        Session session = session();
        MessageConsumer consumer = open(session, true);
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        assertNothing(consumer);
        consumer.close();
        session.unsubscribe(name() + "-share");
        consumer = open(session, true);
        assertNothing(consumer);
        consumer.close();
        session.unsubscribe(name() + "-share");
    }

    @Test
    void nondurableSharedEndsWithLastConsumer() throws Exception {
        Session session = session();
        MessageConsumer first = open(session, false);
        MessageConsumer second = open(session, false);
        first.close();
        send(session, topic(session), "1");
        assertEquals("1", text(second));
        second.close();
        send(session, topic(session), "nobody hears");
        assertNothing(open(session, false));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void sharerTakesUnacknowledgedOfAnother(boolean durable) throws Exception {
        Session one = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = open(one, durable);
        send(one, topic(one), "1", "2");
        assertEquals(List.of("1", "2"), texts(first, 2));
        Session other = session();
        MessageConsumer second = open(other, durable);
        assertNothing(second);
        one.close();
        // Each goes on as soon as it is back, so the order may be either.
        assertEquals(Set.of("1", "2"), Set.copyOf(texts(second, 2)));
        assertNothing(second);
        second.close();
        if (durable) {
            other.unsubscribe(name() + "-share");
        }
    }

    @Test
    void durableAndNondurableOfOneNameDiffer() throws Exception {
        Session session = session();
        MessageConsumer durable = open(session, true);
        MessageConsumer ordinary = open(session, false);
        send(session, topic(session), "1");
        assertEquals("1", text(durable));
        assertEquals("1", text(ordinary));
        durable.close();
        session.unsubscribe(name() + "-share");
    }

    @Test
    @Needs(Feature.GUARDED_SHARED_SUBSCRIPTIONS)
    void subscriptionInUseCannotBeUnsubscribed() throws Exception {
        Session session = session();
        MessageConsumer consumer = open(session, true);
        Session other = session();
        assertThrows(JMSException.class, () -> other.unsubscribe(name() + "-share"));
        send(session, topic(session), "1");
        assertEquals("1", text(consumer));
        consumer.close();
        session.unsubscribe(name() + "-share");
    }

    @Test
    void sharedSubscriptionHasOneSelector() throws Exception {
        Session session = session();
        Topic topic = topic(session);
        MessageConsumer consumer =
                session.createSharedConsumer(topic, name() + "-share", "colour = 'red'");
        Session other = session();
        assertThrows(JMSException.class, () ->
                other.createSharedConsumer(topic, name() + "-share", "colour = 'blue'"));
        var message = session.createTextMessage("red");
        message.setStringProperty("colour", "red");
        session.createProducer(topic).send(message);
        send(session, topic, "no colour");
        assertEquals("red", text(consumer));
        assertNothing(consumer);
    }
}
