package dunlin.crash;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.EnumMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Works on one connection until the broker goes, then on one to its next life, and so on. */
abstract class Worker implements Runnable {
    /** One of so many transactions is rolled back. */
    private static final int ROLLBACKS = 8;
    private static final int BODY_BYTES_MAX = 3_000;

    final Ledger ledger;
    final Random random;
    /** The acknowledgement mode of its sessions. */
    final int mode;
    /** Of the connection that is open. */
    Session session;

    private final Lives lives;
    private final Map<Target, MessageProducer> producers = new EnumMap<>(Target.class);
    private final CountDownLatch worked = new CountDownLatch(1);
    private int epoch;

    Worker(Load load, int mode) {
        this.ledger = load.ledger();
        this.lives = load.lives();
        this.random = load.fork();
        this.mode = mode;
    }

    /** Makes the connection. */
    abstract Connection connect(Broker broker) throws JMSException;

    /** Makes what it needs in the new session. */
    abstract void open() throws JMSException;

    /** One unit of work, or some. */
    abstract void step() throws JMSException, InterruptedException;

    @Override
    public final void run() {
        try {
            Broker broker = lives.after(null);
            while (broker != null) {
                work(broker);
                broker = lives.after(broker);
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException("nobody interrupts a worker", error);
        }
    }

    /** Returns when it has done something; a run without it would prove too little. */
    final void awaitWork() throws InterruptedException {
        if (!worked.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException(this + " never did anything");
        }
    }

    private void work(Broker broker) throws InterruptedException {
        try (Connection connection = connect(broker)) {
            epoch = broker.epoch();
            producers.clear();
            session = connection.createSession(mode);
            open();
            while (lives.goesOn(broker)) {
                step();
                worked.countDown();
            }
        } catch (JMSException error) {
            // As a rule the broker was killed; whatever else it is, the log tells.
            System.out.println(broker.epoch() + " " + getClass().getSimpleName() + ": " + error);
        }
    }

    /** Sends message {@code index} of the {@code size} that the unit is to have. */
    final void send(Ledger.Unit unit, Target target, int index, int size, boolean persistent)
            throws JMSException {
        String name = Parcel.name(unit, index, size);
        unit.sends(name, target, persistent);
        if (!session.getTransacted()) {
            unit.commits();
        }
        MessageProducer producer = producers.get(target);
        if (producer == null) {
            producer = session.createProducer(target.in(session));
            producers.put(target, producer);
        }
        producer.setDeliveryMode(
                persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        producer.send(Parcel.pack(session, name, 1 + random.nextInt(BODY_BYTES_MAX)));
    }

    /** Notes the next message, if one comes soon. */
    final Message take(Ledger.Unit unit, MessageConsumer consumer, Place place, long millis)
            throws JMSException {
        Message message = consumer.receive(millis);
        if (message != null) {
            Parcel.note(message, ledger, unit, epoch, place);
        }
        return message;
    }

    /** Notes what is wrong with what came from a place. */
    final void broken(Place place, String what) {
        ledger.broken(epoch, place, what);
    }

    /** Commits, or rolls back now and then. */
    final void end(Ledger.Unit unit) throws JMSException {
        if (random.nextInt(ROLLBACKS) == 0) {
            session.rollback();
            return;
        }
        unit.commits();
        session.commit();
        unit.done();
    }
}
