package dunlin.bench;

import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.Topic;

/**
 * One combination of the design factors of the Open MQ document. A transacted session commits each
 * message; so does its producer.
 */
record Factor(String place, int acknowledgement, boolean persistent, int bytes, String body,
        boolean selected, String name) {
    /** Behind the first word, in the order of {@code Factors}' usage. */
    static Factor of(String[] words) {
        return new Factor(words[1], acknowledgement(words[2]), words[3].equals("persistent"),
                Integer.parseInt(words[4]), words[5], words[6].equals("selected"), words[7]);
    }

    Destination destination(Session session) throws JMSException {
        return place.equals("queue") ? session.createQueue(name) : session.createTopic(name);
    }

    MessageConsumer consumer(Session session, String selector) throws JMSException {
        String wanted = selected ? selector : null;
        return place.equals("durable")
                ? session.createDurableConsumer((Topic) destination(session), name, wanted, false)
                : session.createConsumer(destination(session), wanted);
    }

    /** What is left of a subscription whose consumer is closed. */
    void forget(Session session) throws JMSException {
        if (place.equals("durable")) {
            session.unsubscribe(name);
        }
    }

    private static int acknowledgement(String word) {
        return switch (word) {
            case "auto" -> Session.AUTO_ACKNOWLEDGE;
            case "client" -> Session.CLIENT_ACKNOWLEDGE;
            case "dups" -> Session.DUPS_OK_ACKNOWLEDGE;
            case "transacted" -> Session.SESSION_TRANSACTED;
            default -> throw new IllegalArgumentException(word + "?");
        };
    }
}
