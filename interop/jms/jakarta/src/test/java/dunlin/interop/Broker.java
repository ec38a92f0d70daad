package dunlin.interop;

import jakarta.jms.ConnectionFactory;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

/** The broker under test, as {@code -Dbroker.url} names it. */
final class Broker {
    /** The queue of its dead letters. */
    static final String DEAD_LETTERS = System.getProperty("broker.dead-letters", "DLQ");

    private static final URI URL = url();

    /**
     * An answer that does not come is an error, not a test that hangs. What has expired is for the
     * broker to keep back, not for the client.
     */
    private static final List<String> OPTIONS = List.of(
            "jms.connectTimeout=10000",
            "jms.requestTimeout=20000",
            "jms.sendTimeout=20000",
            "jms.closeTimeout=10000",
            "jms.localMessageExpiry=false");

    private Broker() {}

    /** Connections to it, with more options of the client's URL. */
    static ConnectionFactory factory(String... options) {
        return factory(URL.getPort(), options);
    }

    /** Connections by way of another port of this machine. */
    static ConnectionFactory factory(int port, String... options) {
        List<String> all = new ArrayList<>(OPTIONS);
        all.addAll(List.of(options));
        String address = URL.getScheme() + "://" + URL.getHost() + ":" + port;
        return new JmsConnectionFactory(address + "?" + String.join("&", all));
    }

    /** Connections that are made anew, by way of another port, when they are lost. */
    static ConnectionFactory failover(int port) {
        String address = URL.getScheme() + "://" + URL.getHost() + ":" + port;
        return new JmsConnectionFactory(
                "failover:(" + address + ")?failover.maxReconnectAttempts=50&"
                        + String.join("&", OPTIONS));
    }

    /** Where it listens. */
    static int port() {
        return URL.getPort();
    }

    /** On which machine. */
    static String host() {
        return URL.getHost();
    }

    private static URI url() {
        String url = System.getProperty("broker.url", "");
        if (url.isEmpty()) {
            throw new IllegalStateException("which broker? -Dbroker.url=amqp://127.0.0.1:5672");
        }
        return URI.create(url);
    }
}
