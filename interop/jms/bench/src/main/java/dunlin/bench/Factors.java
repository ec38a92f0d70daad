package dunlin.bench;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The test of the Open MQ document: a producer sends for a time, and the rate is of all messages over
 * the time until the one consumer has them. Each combination of design factors is asked by a line of
 * the standard input, and answered by a line of JSON.
 */
public final class Factors {
    private static final String USAGE = """
            Factors NAME=URL --broker-pid PID [--millis 400]   in which the producer sends
            then lines: factor queue|topic|durable auto|client|dups|transacted
                persistent|non-persistent BYTES bytes|text|none all|selected NAME""";
    private static final Set<String> KNOWN = Set.of("broker-pid", "millis");
    /** What every message has, so that a selector costs no more than the selecting. */
    private static final String PROPERTY = "NumberOfOrders";

    private final Options options;
    private final Broker broker;

    private Factors(Options options) {
        this.options = options;
        this.broker = options.brokers().get(0);
    }

    public static void main(String[] arguments) throws IOException {
        Factors factors = new Factors(Options.of(arguments, USAGE, KNOWN));
        Questions.answer("factors", factors.broker, factors::answer);
    }

    private void answer(String[] words, Line line) throws JMSException, InterruptedException {
        Factor factor = Factor.of(words);
        try (Connection to = broker.connect(); Connection from = broker.connectStopped()) {
            from.setClientID("factors");
            from.start();
            Session taking = from.createSession(factor.acknowledgement());
            MessageConsumer consumer = factor.consumer(taking, PROPERTY + " > 1000");
            Taker taker = new Taker(taking, consumer, factor.acknowledgement());
            taker.start();
            Span span = Span.begin(options.number("broker-pid", 0));
            long sent = 0;
            try {
                sent = send(factor, to);
            } finally {
                taker.finish(sent);
            }
            span.put(line, taker.lastNanos()).put("messages", sent);
            consumer.close();
            factor.forget(taking);
        }
    }

    /** How many were sent in the time. */
    private long send(Factor factor, Connection connection) throws JMSException {
        boolean transacted = factor.acknowledgement() == Session.SESSION_TRANSACTED;
        Session session = connection.createSession(
                transacted ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(factor.destination(session));
        producer.setDeliveryMode(factor.persistent()
                ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        byte[] bytes = new byte[factor.bytes()];
        String text = "x".repeat(factor.bytes());
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.number("millis", 400));
        long sent = 0;
        while (System.nanoTime() < end) {
            producer.send(message(session, factor, bytes, text));
            if (transacted) {
                session.commit();
            }
            sent++;
        }
        session.close();
        return sent;
    }

    private static Message message(Session session, Factor factor, byte[] bytes, String text)
            throws JMSException {
        Message message = switch (factor.body()) {
            case "text" -> session.createTextMessage(text);
            case "none" -> session.createMessage();
            default -> {
                BytesMessage made = session.createBytesMessage();
                made.writeBytes(bytes);
                yield made;
            }
        };
        message.setIntProperty(PROPERTY, 2000);
        return message;
    }
}
