package dunlin.bench;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;

/** Takes and acknowledges one message after the other, until it has as many as were sent. */
final class Taker extends Thread {
    private static final int LOOK_MILLIS = 20;

    private final Session session;
    private final MessageConsumer consumer;
    private final int acknowledgement;
    private volatile long expected = Long.MAX_VALUE;
    private volatile long lastNanos;
    private volatile JMSException failure;

    Taker(Session session, MessageConsumer consumer, int acknowledgement) {
        super("taker");
        this.session = session;
        this.consumer = consumer;
        this.acknowledgement = acknowledgement;
    }

    /** Waits until it has them all. */
    void finish(long sent) throws JMSException, InterruptedException {
        expected = sent;
        join();
        if (failure != null) {
            throw failure;
        }
    }

    /** When the last one was taken. */
    long lastNanos() {
        return lastNanos;
    }

    @Override
    public void run() {
        lastNanos = System.nanoTime();
        try {
            long taken = 0;
            while (taken < expected) {
                Message message = consumer.receive(LOOK_MILLIS);
                if (message != null) {
                    acknowledge(message);
                    taken++;
                    lastNanos = System.nanoTime();
                } else if (System.nanoTime() - lastNanos > Broker.ANSWER_MILLIS * 1_000_000L) {
                    throw new JMSException((expected - taken) + " messages did not come");
                }
            }
        } catch (JMSException error) {
            failure = error;
        }
    }

    private void acknowledge(Message message) throws JMSException {
        switch (acknowledgement) {
            case Session.CLIENT_ACKNOWLEDGE -> message.acknowledge();
            case Session.SESSION_TRANSACTED -> session.commit();
            default -> { }
        }
    }
}
