package dunlin.crash;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Session;

/** Sends to queues and the topic, each message by itself or many in a transaction. */
final class Producing extends Worker {
    /** Above this the consumers are left to catch up. */
    private static final long BACKLOG_MAX = 4_000;
    private static final long PAUSE_MILLIS = 5;
    private static final Target[] TARGETS = {Target.ORDERS, Target.BILLS, Target.NEWS};
    /** One of so many messages is not persistent: a kill may take it. */
    private static final int VOLATILES = 8;
    private static final int SMALL = 10;
    /** One of so many transactions is large: no frame of the broker's log holds it. */
    private static final int LARGE_ONES = 10;
    private static final int LARGE = 1_000;

    Producing(Load load, int mode) {
        super(load, mode);
    }

    @Override
    Connection connect(Broker broker) throws JMSException {
        return broker.connect();
    }

    @Override
    void open() {}

    @Override
    void step() throws JMSException, InterruptedException {
        if (ledger.backlog() > BACKLOG_MAX) {
            Thread.sleep(PAUSE_MILLIS);
        } else if (mode == Session.SESSION_TRANSACTED) {
            sendMany(random.nextInt(LARGE_ONES) == 0 ? LARGE : 1 + random.nextInt(SMALL));
        } else {
            Ledger.Unit unit = ledger.unit();
            sendOne(unit, 0, 1);
            unit.done();
        }
    }

    private void sendMany(int size) throws JMSException {
        Ledger.Unit unit = ledger.unit();
        for (int index = 0; index < size; index++) {
            sendOne(unit, index, size);
        }
        end(unit);
    }

    private void sendOne(Ledger.Unit unit, int index, int size) throws JMSException {
        Target target = TARGETS[random.nextInt(TARGETS.length)];
        send(unit, target, index, size, random.nextInt(VOLATILES) > 0);
    }
}
