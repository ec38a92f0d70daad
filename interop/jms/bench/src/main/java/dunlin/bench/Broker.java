package dunlin.bench;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * A broker by the name that its figures get. {@code amqp:} is asked through Qpid JMS, {@code tcp:}
 * through ActiveMQ Classic's own client.
 */
record Broker(String name, String url) {
    /** No answer for so long is an error: a measurement that hangs is none. */
    static final int ANSWER_MILLIS = 60_000;

    static Broker of(String word) {
        String[] parts = word.split("=", 2);
        if (parts.length != 2 || !parts[1].matches("(amqp|tcp)://.+")) {
            throw new IllegalArgumentException(word + "? NAME=amqp://HOST:PORT or tcp://");
        }
        return new Broker(parts[0], parts[1]);
    }

    /** A new connection, started. */
    Connection connect() throws JMSException {
        Connection connection = url.startsWith("amqp:") ? qpid() : activemq();
        connection.start();
        return connection;
    }

    private Connection qpid() throws JMSException {
        return new JmsConnectionFactory(url + "?jms.connectTimeout=" + ANSWER_MILLIS
                + "&jms.requestTimeout=" + ANSWER_MILLIS + "&jms.sendTimeout=" + ANSWER_MILLIS
                + "&jms.closeTimeout=" + ANSWER_MILLIS).createConnection();
    }

    private Connection activemq() throws JMSException {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url);
        factory.setConnectResponseTimeout(ANSWER_MILLIS);
        factory.setSendTimeout(ANSWER_MILLIS);
        factory.setCloseTimeout(ANSWER_MILLIS);
        return factory.createConnection();
    }
}
