package dunlin.bench;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.Locale;

/**
 * Through what messages go, and how they are sent and taken: one case of the JORAM document. A
 * transaction has as many messages as a group, whose mean travel time is one figure.
 */
record Flow(Place place, boolean sendsTransacted, boolean takesTransacted, String name) {
    /** The document's groups: of 10 by a queue, of 50 by a topic. */
    enum Place {
        QUEUE(10),
        TOPIC(50),
        DURABLE(50);

        final int group;

        Place(int group) {
            this.group = group;
        }
    }

    /** {@code PLACE PRODUCER CONSUMER NAME}. */
    static Flow of(String[] words, int from) {
        Place place = Place.valueOf(words[from].toUpperCase(Locale.ROOT));
        return new Flow(place, transacted(words[from + 1]), transacted(words[from + 2]),
                words[from + 3]);
    }

    Session sending(Connection connection) throws JMSException {
        return session(connection, sendsTransacted);
    }

    Session taking(Connection connection) throws JMSException {
        return session(connection, takesTransacted);
    }

    Destination destination(Session session) throws JMSException {
        return place == Place.QUEUE ? session.createQueue(name) : session.createTopic(name);
    }

    /** A durable one is there from the first time on, until it is forgotten. */
    MessageConsumer consumer(Session session) throws JMSException {
        return place == Place.DURABLE
                ? session.createDurableConsumer((Topic) destination(session), name)
                : session.createConsumer(destination(session));
    }

    /** What is left of a subscription whose consumer is closed. */
    void forget(Connection connection) throws JMSException {
        if (place == Place.DURABLE) {
            try (Session session = connection.createSession()) {
                session.unsubscribe(name);
            }
        }
    }

    private static boolean transacted(String word) {
        return switch (word) {
            case "transacted" -> true;
            case "plain" -> false;
            default -> throw new IllegalArgumentException(word + "? transacted or plain");
        };
    }

    private static Session session(Connection connection, boolean transacted) throws JMSException {
        return connection.createSession(
                transacted ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
    }
}
