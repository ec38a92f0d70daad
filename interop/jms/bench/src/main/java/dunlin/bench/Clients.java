package dunlin.bench;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * {@code amqp:} is asked through Qpid JMS, {@code tcp:} and {@code vm:} through ActiveMQ Classic's own
 * client, {@code mq:} through Open MQ's.
 */
final class Clients {
    private Clients() {}

    static boolean know(String url) {
        return url.matches("(amqp|tcp|vm|mq)://.+");
    }

    static Connection connect(String url, int answerMillis) throws JMSException {
        return switch (url.substring(0, url.indexOf(':'))) {
            case "amqp" -> qpid(url, answerMillis);
            case "mq" -> openmq(url);
            default -> activemq(url, answerMillis);
        };
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

    /** By name: it is no library that Maven knows, but part of a distribution. */
    private static Connection openmq(String url) throws JMSException {
        try {
            Class<?> kind = Class.forName("com.sun.messaging.ConnectionFactory");
            Object factory = kind.getConstructor().newInstance();
            kind.getMethod("setProperty", String.class, String.class)
                    .invoke(factory, "imqAddressList", url + "/jms");
            return ((ConnectionFactory) factory).createConnection();
        } catch (ReflectiveOperationException error) {
            throw new JMSException(error.toString());
        }
    }
}
