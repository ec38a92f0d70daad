package dunlin.bench;

import java.net.ConnectException;
import java.net.URI;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.JMSException;
import org.objectweb.joram.client.jms.admin.AdminException;
import org.objectweb.joram.client.jms.admin.AdminModule;
import org.objectweb.joram.client.jms.admin.User;
import org.objectweb.joram.client.jms.tcp.TcpConnectionFactory;

/** {@code joram:} is asked through JORAM's own client. */
final class Clients {
    private static final String USER = "anonymous";
    /**
     * The server gives a listener 101 messages, and more of what it has when the next is published or
     * the client asks again. By its defaults that never asks; so it does, below half of them.
     */
    private static final int PENDING_MAX = 50;

    private Clients() {}

    static boolean know(String url) {
        return url.startsWith("joram://");
    }

    static Connection connect(String url, int answerMillis) throws JMSException {
        URI place = URI.create(url);
        var factory = TcpConnectionFactory.create(place.getHost(), place.getPort());
        factory.getParameters().connectingTimer = answerMillis / 1000;
        factory.getParameters().topicPassivationThreshold = PENDING_MAX;
        factory.getParameters().topicActivationThreshold = PENDING_MAX / 2;
        admit(factory);
        return factory.createConnection(USER, USER);
    }

    /** It knows no one but its administrator; who is there already is left as it is. */
    private static synchronized void admit(ConnectionFactory factory) throws JMSException {
        try {
            AdminModule.connect(factory, "root", "root");
            User.create(USER, USER);
            AdminModule.disconnect();
        } catch (AdminException | ConnectException error) {
            throw new JMSException(error.toString());
        }
    }
}
