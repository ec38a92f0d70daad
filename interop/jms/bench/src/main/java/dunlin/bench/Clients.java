package dunlin.bench;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/** {@code amqp:} is asked through Qpid JMS, {@code tcp:} and {@code vm:} through ActiveMQ Classic's own client. */
final class Clients {
    private Clients() {}

    static boolean know(String url) {
        return url.matches("(amqp|tcp|vm)://.+");
    }

    static Connection connect(String url, int answerMillis) throws JMSException {
        return url.startsWith("amqp:") ? qpid(url, answerMillis) : activemq(url, answerMillis);
    }

    private static Connection qpid(String url, int answerMillis) throws JMSException {
        return new JmsConnectionFactory(url + "?jms.connectTimeout=" + answerMillis
                + "&jms.requestTimeout=" + answerMillis + "&jms.sendTimeout=" + answerMillis
                + "&jms.closeTimeout=" + answerMillis).createConnection();
    }

    private static Connection activemq(String url, int answerMillis) throws JMSException {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url);
        factory.setConnectResponseTimeout(answerMillis);
        factory.setSendTimeout(answerMillis);
        factory.setCloseTimeout(answerMillis);
        return factory.createConnection();
    }
}
