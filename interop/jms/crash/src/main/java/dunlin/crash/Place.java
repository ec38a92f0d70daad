package dunlin.crash;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;

/** Where messages wait: queues, and durable subscriptions of one topic. */
enum Place {
    ORDERS,
    BILLS,
    RECEIPTS,
    /** What one client holds whenever the broker goes. */
    HELD,
    /** The dead letters. Nothing may ever be here: nothing fails often enough. */
    DLQ,
    EAST,
    WEST;

    /** The topic of the subscriptions. */
    static final String TOPIC = "news";

    /** Its name, at the broker and in the ledger. */
    String label() {
        return this == DLQ ? "DLQ" : name().toLowerCase(java.util.Locale.ROOT);
    }

    boolean isSubscription() {
        return this == EAST || this == WEST;
    }

    /** A connection that may consume here. */
    Connection connect(Broker broker, String... options) throws JMSException {
        if (!isSubscription()) {
            return broker.connect(options);
        }
        String all = String.join("&", options);
        return broker.connect("jms.clientID=office-" + label(), all);
    }

    MessageConsumer consumer(Session session) throws JMSException {
        return isSubscription()
                ? session.createDurableSubscriber(session.createTopic(TOPIC), label())
                : session.createConsumer(session.createQueue(label()));
    }
}
