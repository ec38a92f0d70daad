package dunlin.crash;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Session;

/**
 * Has messages in its hands whenever the broker goes, and never acknowledges any: neither a kill
 * nor an orderly stop is a failed attempt, or healthy messages would end as dead letters.
 */
final class Holding extends Consuming {
    /** So many are there for it, from the beginning. */
    static final int COUNT = 5;

    Holding(Load load) {
        super(load, Session.CLIENT_ACKNOWLEDGE, Place.HELD);
    }

    @Override
    void step() throws JMSException {
        Message message = takeAnywhere(ledger.unit());
        int attempt = message == null ? 1 : message.getIntProperty("JMSXDeliveryCount");
        if (attempt > 1) {
            broken(Place.HELD, "attempt " + attempt + " of a message that nobody failed");
        }
    }
}
