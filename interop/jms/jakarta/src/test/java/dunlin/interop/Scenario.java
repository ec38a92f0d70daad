package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Destination;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;

/**
 * What every scenario has: names that nobody else uses, connections that end with it, and ways to
 * say that a message comes or that none does.
 *
 * <p>Nothing sleeps. That a message comes is waited for. That none comes is known from {@code
 * receiveNoWait}: the client asks the broker for all that it has for the consumer.
 */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
abstract class Scenario {
    /** A message that is there comes sooner than this many milliseconds. */
    static final long WAIT = 15_000;

    private final Deque<AutoCloseable> opened = new ArrayDeque<>();
    private String name;

    @BeforeEach
    void nameIt(TestInfo test) {
        String method = test.getTestMethod().orElseThrow().getName();
        name = method + "-" + UUID.randomUUID().toString().substring(0, 8);
    }

    @AfterEach
    void closeAll() throws Exception {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }

    /** A name that only this run of this scenario uses. */
    String name() {
        return name;
    }

    /** A connection that is started, and closed at the end. */
    Connection connect(String... options) throws JMSException {
        return connect(Broker.factory(options));
    }

    /** Another way to connect. */
    Connection connect(ConnectionFactory factory) throws JMSException {
        Connection connection = closing(factory.createConnection());
        connection.start();
        return connection;
    }

    /** A connection of a client that has a name. */
    Connection connectAs(String client) throws JMSException {
        return connect("jms.clientID=" + client);
    }

    /** A context that is closed at the end. */
    JMSContext context(int mode) {
        return closing(Broker.factory().createContext(mode));
    }

    /** Closes it at the end; the latest first. */
    <T extends AutoCloseable> T closing(T thing) {
        opened.push(thing);
        return thing;
    }

    Session session() throws JMSException {
        return session(Session.AUTO_ACKNOWLEDGE);
    }

    /** A session of its own connection. */
    Session session(int mode) throws JMSException {
        return connect().createSession(mode);
    }

    Queue queue(Session session) throws JMSException {
        return session.createQueue(name);
    }

    Topic topic(Session session) throws JMSException {
        return session.createTopic(name);
    }

    /** Sends each text as a persistent message; returns when all are stored. */
    static void send(Session session, Destination to, String... texts) throws JMSException {
        try (MessageProducer producer = session.createProducer(to)) {
            for (String text : texts) {
                producer.send(session.createTextMessage(text));
            }
        }
    }

    /** As {@link #send}, from a connection of its own. */
    void sendAside(Destination to, String... texts) throws JMSException {
        try (Connection aside = Broker.factory().createConnection()) {
            send(aside.createSession(), to, texts);
        }
    }

    /** The next message, which has to come. */
    static Message next(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(WAIT);
        assertNotNull(message, "a message is there");
        return message;
    }

    /** The text of the next message, which has to come. */
    static String text(MessageConsumer consumer) throws JMSException {
        return text(next(consumer));
    }

    static String text(Message message) throws JMSException {
        return ((TextMessage) message).getText();
    }

    /** The texts of the next so many messages. */
    static List<String> texts(MessageConsumer consumer, int count) throws JMSException {
        List<String> texts = new ArrayList<>();
        while (texts.size() < count) {
            texts.add(text(consumer));
        }
        return texts;
    }

    /** The texts of all that is there. */
    static List<String> rest(MessageConsumer consumer) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Message m = consumer.receiveNoWait(); m != null; m = consumer.receiveNoWait()) {
            texts.add(text(m));
        }
        return texts;
    }

    static void assertNothing(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receiveNoWait();
        assertNull(message, "nothing is there");
    }

    /** What a new consumer finds in the queue, which is empty afterwards. */
    List<String> left(Queue queue) throws JMSException {
        try (Connection aside = Broker.factory().createConnection()) {
            aside.start();
            return rest(aside.createSession().createConsumer(queue));
        }
    }

    /** Returns when the broker's clock has gone on by this many milliseconds. */
    void letPass(long millis) throws JMSException {
        try (Connection aside = Broker.factory().createConnection()) {
            aside.start();
            Session session = aside.createSession();
            Queue clock = session.createQueue(name + "-clock");
            MessageProducer producer = session.createProducer(clock);
            producer.setDeliveryDelay(millis);
            producer.send(session.createMessage());
            next(session.createConsumer(clock));
        }
    }
}
