package dunlin.bench;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The test of the JORAM document: a producer that sends as fast as it may while one consumer takes;
 * and the same consumer with what was sent before, alone. Each is asked by a line of the standard
 * input, and answered by a line of JSON.
 *
 * <p>All messages are persistent. Producer and consumer have a connection each.
 */
public final class Saturation {
    private static final String USAGE = """
            Saturation NAME=URL --broker-pid PID [--messages 10000] [--backlog 2000]
              [--millis 1000] [--bytes 1024]
            then lines: saturate|fill|drain queue|topic|durable PRODUCER CONSUMER DESTINATION
              where PRODUCER and CONSUMER are plain or transacted
              saturate: sends --messages while they are taken
              fill: sends --backlog messages that nobody takes; drain: takes them
              --millis: saturate ends after so long with what it has, the others after half""";
    private static final Set<String> KNOWN = Set.of("broker-pid", "messages", "backlog", "millis", "bytes");

    private final Options options;
    private final Broker broker;
    private Backlog backlog;

    /** What waits to be drained; a subscriber that is not durable has to be there meanwhile. */
    private record Backlog(Connection connection, Intake intake, int messages) {}

    private Saturation(Options options) {
        this.options = options;
        this.broker = options.brokers().get(0);
    }

    public static void main(String[] arguments) throws IOException {
        Saturation saturation = new Saturation(Options.of(arguments, USAGE, KNOWN));
        Questions.answer("saturation", saturation.broker, saturation::answer);
    }

    private void answer(String[] words, Line line) throws JMSException, InterruptedException {
        Flow flow = Flow.of(words, 1);
        switch (words[0]) {
            case "saturate" -> saturate(flow, line);
            case "fill" -> fill(flow, line);
            case "drain" -> drain(flow, line);
            default -> throw new IllegalArgumentException(words[0] + "?");
        }
    }

    /** Counts what is taken until the last message is sent: then nothing competes any more. */
    private void saturate(Flow flow, Line line) throws JMSException {
        try (Connection from = connect(true, "taking"); Connection to = connect(true, "sending");
                Intake intake = new Intake(flow, from)) {
            send(flow, to, options.number("messages", 10_000), spanNanos(), line);
            int received = intake.travels.count();
            intake.check();
            line.put("received", received)
                    .put("point_messages", intake.travels.pointMessages(received))
                    .put("travel_ms", intake.travels.points(received));
        }
    }

    private void fill(Flow flow, Line line) throws JMSException {
        Connection from = connect(false, "taking");
        Intake intake = null;
        if (flow.place() == Flow.Place.TOPIC) {
            intake = new Intake(flow, from);
        } else {
            // A durable subscription is made, and left.
            Session session = flow.taking(from);
            flow.consumer(session).close();
            session.close();
        }
        try (Connection to = connect(true, "sending")) {
            int messages = options.number("backlog", 2_000);
            int sent = send(flow, to, messages, spanNanos() / 2, line);
            backlog = new Backlog(from, intake, sent);
        }
    }

    private void drain(Flow flow, Line line) throws JMSException, InterruptedException {
        Backlog waiting = backlog;
        try (Connection from = waiting.connection) {
            Span span = Span.begin(brokerPid());
            try (Intake intake = waiting.intake != null ? waiting.intake
                    : new Intake(flow, from)) {
                from.start();
                long end = intake.await(waiting.messages, span.begun() + spanNanos() / 2);
                span.put(line, end).put("received", intake.travels.count());
            }
        }
    }

    /** A connection by which durable subscribers are known again. */
    private Connection connect(boolean started, String client) throws JMSException {
        Connection connection = broker.connectStopped();
        connection.setClientID("saturation-" + client);
        if (started) {
            connection.start();
        }
        return connection;
    }

    /** In whole groups, so that no transaction is left open. How many were sent. */
    private int send(Flow flow, Connection connection, int messages, long spanNanos, Line line)
            throws JMSException {
        byte[] rest = new byte[options.number("bytes", 1024) - Long.BYTES];
        Session session = flow.sending(connection);
        MessageProducer producer = session.createProducer(flow.destination(session));
        Span span = Span.begin(brokerPid());
        int sent = 0;
        while (sent < messages && span.nanos() < spanNanos) {
            for (int place = 0; place < flow.place().group; place++) {
                BytesMessage message = session.createBytesMessage();
                message.writeLong(System.nanoTime());
                message.writeBytes(rest);
                producer.send(message);
            }
            sent += flow.place().group;
            if (flow.sendsTransacted()) {
                session.commit();
            }
        }
        span.put(line, System.nanoTime()).put("sent", sent);
        return sent;
    }

    private long spanNanos() {
        return TimeUnit.MILLISECONDS.toNanos(options.number("millis", 1000));
    }

    private int brokerPid() {
        return options.number("broker-pid", 0);
    }
}
