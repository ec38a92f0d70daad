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
        if (message != null && message.getIntProperty("JMSXDeliveryCount") > 1) {
            broken(Place.HELD, "an attempt was counted for a stop of the broker: " + message);
        }
    }
}
