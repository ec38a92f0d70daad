package dunlin.bench;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Non-persistent messages from one producer, as fast as it may, to one consumer with
 * AUTO_ACKNOWLEDGE: how many arrive a second, and how long each travels. Both are in one process
 * with a connection each. One line of JSON a broker.
 */
public final class Travel {
    private static final String USAGE =
            "Travel NAME=URL... [--seconds 10] [--bytes 1024] [--warm-up-seconds 5]";
    private static final Set<String> KNOWN = Set.of("seconds", "bytes", "warm-up-seconds");

    private final Options options;
    private boolean failed;

    private Travel(Options options) {
        this.options = options;
    }

    public static void main(String[] arguments) {
        Travel travel = new Travel(Options.of(arguments, USAGE, KNOWN));
        for (Broker broker : travel.options.brokers()) {
            travel.measure(broker);
        }
        System.exit(travel.failed ? 1 : 0);
    }

    private void measure(Broker broker) {
        int bytes = Math.max(Long.BYTES, options.number("bytes", 1024));
        int seconds = options.number("seconds", 10);
        Line line = new Line("travel", broker).put("bytes", bytes).put("seconds", seconds);
        ExecutorService threads = Executors.newSingleThreadExecutor();
        try (Connection to = broker.connect(); Connection from = broker.connect()) {
            String queue = "bench." + UUID.randomUUID();
            long begin = System.nanoTime()
                    + TimeUnit.SECONDS.toNanos(options.number("warm-up-seconds", 5));
            long end = begin + TimeUnit.SECONDS.toNanos(seconds);
            MessageConsumer consumer = consumer(from, queue);
            Future<Long> sent = threads.submit(() -> produce(to, queue, bytes, begin, end));
            Samples travelled = consume(consumer, begin, end);
            // A producer may wait for room, which only a consumer makes.
            while (!sent.isDone()) {
                consumer.receive(10);
            }
            line.put("sent_per_second", (double) sent.get() / seconds)
                    .put("per_second", (double) travelled.count() / seconds)
                    .put("travel_p50_ms", travelled.millis(0.5))
                    .put("travel_p99_ms", travelled.millis(0.99));
        } catch (JMSException | ExecutionException | InterruptedException error) {
            failed = true;
            line.put("error", error.toString());
        } finally {
            threads.shutdownNow();
        }
        line.print();
    }

    private static MessageConsumer consumer(Connection connection, String queue)
            throws JMSException {
        Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
        return session.createConsumer(session.createQueue(queue));
    }

    /** Sends until the end and counts what was sent since the beginning. */
    private static long produce(Connection connection, String queue, int bytes, long begin,
            long end) throws JMSException {
        Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        byte[] rest = new byte[bytes - Long.BYTES];
        long sent = 0;
        long now = System.nanoTime();
        while (now < end) {
            BytesMessage message = session.createBytesMessage();
            message.writeLong(now);
            message.writeBytes(rest);
            producer.send(message);
            if (now >= begin) {
                sent++;
            }
            now = System.nanoTime();
        }
        return sent;
    }

    /** Receives until the end, or the first message after it; what arrived since the beginning. */
    private static Samples consume(MessageConsumer consumer, long begin, long end)
            throws JMSException {
        Samples travelled = new Samples();
        while (true) {
            BytesMessage message = (BytesMessage) consumer.receive(Broker.ANSWER_MILLIS);
            long now = System.nanoTime();
            if (now >= end) {
                return travelled;
            }
            if (message == null) {
                throw new JMSException("no message came for a minute");
            }
            if (now >= begin) {
                travelled.add(now - message.readLong());
            }
        }
    }
}
