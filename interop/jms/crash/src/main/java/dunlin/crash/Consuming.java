package dunlin.crash;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Takes messages from some places; in what way is for the subclasses to say. */
abstract class Consuming extends Worker {
    private static final int MANY = 8;
    private static final long WAIT_MILLIS = 20;

    private final List<Place> places;
    private final Map<Place, MessageConsumer> consumers = new EnumMap<>(Place.class);

    /** If one of the places is a subscription it is the only one: their clients have names. */
    Consuming(Load load, int mode, Place... places) {
        super(load, mode);
        this.places = List.of(places);
    }

    @Override
    final Connection connect(Broker broker) throws JMSException {
        // Few or many are on their way when the broker is killed.
        String prefetch = "jms.prefetchPolicy.all=" + (random.nextBoolean() ? 5 : 1_000);
        return places.get(0).connect(broker, prefetch);
    }

    @Override
    final void open() throws JMSException {
        consumers.clear();
        for (Place place : places) {
            consumers.put(place, place.consumer(session));
        }
    }

    final int some() {
        return 1 + random.nextInt(MANY);
    }

    final Message takeAnywhere(Ledger.Unit unit) throws JMSException {
        Place place = places.get(random.nextInt(places.size()));
        return take(unit, consumers.get(place), place, WAIT_MILLIS);
    }

    /** Takes some in a transaction, and passes each on where there is a target. */
    static final class Transacted extends Consuming {
        private final Target target;

        Transacted(Load load, Target target, Place... places) {
            super(load, Session.SESSION_TRANSACTED, places);
            this.target = target;
        }

        @Override
        void step() throws JMSException {
            Ledger.Unit unit = ledger.unit();
            int taken = 0;
            for (int wanted = some(); taken < wanted && takeAnywhere(unit) != null; taken++) {}
            for (int index = 0; target != null && index < taken; index++) {
                send(unit, target, index, taken, true);
            }
            if (taken > 0) {
                end(unit);
            }
        }
    }

    /**
     * Acknowledges some, then sends a receipt. An acknowledgement has no answer; the receipt has,
     * it follows on the same way, and the broker's log has one order: the answer is for both.
     */
    static final class Acknowledged extends Consuming {
        Acknowledged(Load load, int mode, Place... places) {
            super(load, mode, places);
        }

        @Override
        void step() throws JMSException {
            List<Ledger.Unit> units = new ArrayList<>();
            Message last = null;
            for (int wanted = some(); units.size() < wanted; ) {
                Ledger.Unit unit = ledger.unit();
                Message message = takeAnywhere(unit);
                if (message == null) {
                    break;
                }
                if (mode == Session.AUTO_ACKNOWLEDGE) {
                    unit.commits();
                }
                units.add(unit);
                last = message;
            }
            if (last != null) {
                acknowledge(units, last);
            }
        }

        private void acknowledge(List<Ledger.Unit> units, Message last) throws JMSException {
            if (mode == Session.CLIENT_ACKNOWLEDGE) {
                units.forEach(Ledger.Unit::commits);
                last.acknowledge();
            }
            Ledger.Unit receipt = ledger.unit();
            send(receipt, Target.RECEIPTS, 0, 1, true);
            receipt.done();
            units.forEach(Ledger.Unit::done);
        }
    }
}
