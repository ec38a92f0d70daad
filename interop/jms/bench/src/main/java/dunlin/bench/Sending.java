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

/**
 * The test of the ActiveMQ document: messages sent, in a transaction each or in none, persistent or
 * not, which is said to the producer or with each message. Each is asked by a line of the standard
 * input, and answered by a line of JSON.
 */
public final class Sending {
    private static final String USAGE = """
            Sending NAME=URL --broker-pid PID [--messages 1000] [--bytes 1024]
            then lines: send producer|send plain|transacted persistent|non-persistent QUEUE
                        take QUEUE   as many as were sent""";
    private static final Set<String> KNOWN = Set.of("broker-pid", "messages", "bytes");

    private final Options options;
    private final Broker broker;
    private final int messages;

    private Sending(Options options) {
        this.options = options;
        this.broker = options.brokers().get(0);
        this.messages = options.number("messages", 1000);
    }

    public static void main(String[] arguments) throws IOException {
        Sending sending = new Sending(Options.of(arguments, USAGE, KNOWN));
        Questions.answer("sending", sending.broker, sending::answer);
    }

    private void answer(String[] words, Line line) throws JMSException {
        try (Connection connection = broker.connect()) {
            switch (words[0]) {
                case "send" -> send(connection, words, line);
                case "take" -> take(connection, words[1], line);
                default -> throw new IllegalArgumentException(words[0] + "?");
            }
        }
    }

    private void send(Connection connection, String[] words, Line line) throws JMSException {
        boolean onEach = words[1].equals("send");
        boolean transacted = words[2].equals("transacted");
        int mode = words[3].equals("persistent")
                ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT;
        byte[] body = new byte[options.number("bytes", 1024)];
        Session session = connection.createSession(
                transacted ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(words[4]));
        if (!onEach) {
            producer.setDeliveryMode(mode);
        }
        Span span = Span.begin(options.number("broker-pid", 0));
        for (int sent = 0; sent < messages; sent++) {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(body);
            if (onEach) {
                producer.send(message, mode, Message.DEFAULT_PRIORITY, 0);
            } else {
                producer.send(message);
            }
            if (transacted) {
                session.commit();
            }
        }
        long end = System.nanoTime();
        producer.close();
        session.close();
        line.put("closed_nanos", span.nanos());
        span.put(line, end).put("sent", messages);
    }

    private void take(Connection connection, String queue, Line line) throws JMSException {
        Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
        Span span = Span.begin(options.number("broker-pid", 0));
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        for (int received = 1; received <= messages; received++) {
            if (consumer.receive(Broker.ANSWER_MILLIS) == null) {
                throw new JMSException("message " + received + " did not come");
            }
        }
        span.put(line, System.nanoTime()).put("received", messages);
    }
}
