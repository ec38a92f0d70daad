package dunlin.bench;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;

/**
 * The consumer of a {@link Flow}: it asks for one message after the other of a queue, and listens to
 * a topic, as the document's do. It goes on until it is closed.
 */
final class Intake implements AutoCloseable {
    private static final int LOOK_MILLIS = 20;

    final Travels travels;

    private final Flow flow;
    private final Connection connection;
    private final Session session;
    private final MessageConsumer consumer;
    private volatile boolean over;
    /** With its acknowledgement or commit; changed after {@code lastNanos}. */
    private volatile int done;
    private volatile long lastNanos = System.nanoTime();
    private volatile JMSException failure;
    private Thread receiver;

    /** Begins, as far as the connection is started. */
    Intake(Flow flow, Connection connection) throws JMSException {
        this.flow = flow;
        this.connection = connection;
        this.travels = new Travels(flow.place().group);
        session = flow.taking(connection);
        consumer = flow.consumer(session);
        if (flow.place() == Flow.Place.QUEUE) {
            receiver = new Thread(this::receive, "intake");
            receiver.start();
        } else {
            consumer.setMessageListener(this::take);
        }
    }

    /** Until so many are done, at most until {@code end}; when that was. */
    long await(int messages, long end) throws JMSException, InterruptedException {
        while (done < messages && System.nanoTime() < end) {
            check();
            Thread.sleep(1);
        }
        return done < messages ? System.nanoTime() : lastNanos;
    }

    void check() throws JMSException {
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public void close() throws JMSException {
        over = true;
        try {
            if (receiver != null) {
                receiver.join();
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        // Not the consumer by itself: Qpid JMS leaves it until the transaction is over.
        session.close();
        flow.forget(connection);
    }

    private void receive() {
        try {
            while (!over) {
                Message message = consumer.receive(LOOK_MILLIS);
                if (message != null) {
                    take(message);
                }
            }
        } catch (JMSException error) {
            failure = error;
        }
    }

    private void take(Message message) {
        try {
            travels.add(System.nanoTime() - ((BytesMessage) message).readLong());
            if (flow.takesTransacted() && travels.count() % flow.place().group == 0) {
                session.commit();
            }
            lastNanos = System.nanoTime();
            done = travels.count();
        } catch (JMSException error) {
            failure = error;
        }
    }
}
