package dunlin.crash;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;

/** Takes everything from everywhere, when nobody else is there any more. */
final class Drain {
    private static final int AT_ONCE = 100;

    private final Ledger ledger;
    private final Broker broker;

    Drain(Ledger ledger, Broker broker) {
        this.ledger = ledger;
        this.broker = broker;
    }

    void run() throws JMSException {
        for (Place place : Place.values()) {
            try (Connection connection = place.connect(broker)) {
                Session session = connection.createSession(Session.SESSION_TRANSACTED);
                MessageConsumer consumer = place.consumer(session);
                while (takeSome(session, consumer, place)) {}
            }
        }
        ledger.drained();
    }

    /** False once the broker has said that nothing is left. */
    private boolean takeSome(Session session, MessageConsumer consumer, Place place)
            throws JMSException {
        Ledger.Unit unit = ledger.unit();
        Message message = consumer.receiveNoWait();
        for (int count = 1; message != null; count++) {
            Parcel.note(message, ledger, unit, broker.epoch(), place);
            if (count == AT_ONCE) {
                break;
            }
            message = consumer.receiveNoWait();
        }
        unit.commits();
        session.commit();
        unit.done();
        return message != null;
    }
}
