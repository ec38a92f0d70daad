package dunlin.crash;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * One life of the broker, from its start to its kill.
 *
 * @param epoch which life it is, from 1
 * @param address HOST:PORT, another one each time
 */
record Broker(int epoch, String address) {
    /** No answer for so long is an error, and so the load goes on. */
    private static final int ANSWER_MILLIS = 20_000;

    /** A connection that is started and ends for good with this life. */
    Connection connect(String... options) throws JMSException {
        String url = "amqp://" + address + "?jms.connectTimeout=" + ANSWER_MILLIS
                + "&jms.requestTimeout=" + ANSWER_MILLIS + "&jms.sendTimeout=" + ANSWER_MILLIS
                + "&jms.closeTimeout=" + ANSWER_MILLIS + "&" + String.join("&", options);
        Connection connection = new JmsConnectionFactory(url).createConnection();
        try {
            connection.start();
            return connection;
        } catch (JMSException error) {
            connection.close();
            throw error;
        }
    }
}
