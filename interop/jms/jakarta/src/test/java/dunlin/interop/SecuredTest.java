package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.Topic;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.List;
import javax.net.ssl.SSLHandshakeException;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** TLS, users and rights: a second broker, as the variables SECURED_… name it. */
@EnabledIfEnvironmentVariable(named = "SECURED_ADDR", matches = ".+")
class SecuredTest extends Scenario {
    private static final String ADDRESS = System.getenv("SECURED_ADDR");
    private static final String PASSWORD = System.getenv("SECURED_PASSWORD");

    /** Both modules fail to log in, each by users of its own. */
    private static final List<String> EVES =
            Connection.class.getName().startsWith("jakarta")
                    ? List.of("eve-1", "eve-2")
                    : List.of("eve-3", "eve-4");

    @TempDir
    static Path folder;

    private static String trusted;

    @BeforeAll
    static void trustRoot() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (InputStream pem = Files.newInputStream(Path.of(System.getenv("SECURED_CA")))) {
            var certificate = CertificateFactory.getInstance("X.509").generateCertificate(pem);
            store.setCertificateEntry("root", certificate);
        }
        Path file = folder.resolve("trusted.p12");
        try (OutputStream out = Files.newOutputStream(file)) {
            store.store(out, "trusted".toCharArray());
        }
        trusted = "&transport.trustStoreLocation="
                + URLEncoder.encode(file.toString(), StandardCharsets.UTF_8)
                + "&transport.trustStorePassword=trusted&transport.trustStoreType=PKCS12";
    }

    private Connection logIn(String user, String password, String options) throws JMSException {
        var factory = new JmsConnectionFactory(
                "amqps://" + ADDRESS + "?jms.connectTimeout=10000&jms.requestTimeout=20000"
                        + options);
        factory.setUsername(user);
        factory.setPassword(password);
        return connect(factory);
    }

    private Connection logIn(String user, String... options) throws JMSException {
        return logIn(user, PASSWORD, trusted + String.join("", options));
    }

    private String own() {
        return "ann." + name();
    }

    private String other() {
        return "other." + name();
    }

    private static void assertDenied(Executable command) {
        var refusal = assertThrows(JMSSecurityException.class, command);
        String message = refusal.getMessage();
        assertTrue(message.contains("user ann may not"), message);
        assertTrue(message.contains("amqp:unauthorized-access"), message);
    }

    @Test
    void unknownRootIsRefused() {
        Throwable cause = assertThrows(JMSException.class, () -> logIn("ann", PASSWORD, ""));
        while (cause.getCause() != null && !(cause instanceof SSLHandshakeException)) {
            cause = cause.getCause();
        }
        assertInstanceOf(SSLHandshakeException.class, cause);
    }

    @Test
    void mechanismsLogIn() throws Exception {
        for (String mechanism : List.of("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")) {
            Session session = logIn("ann", "&amqp.saslMechanisms=" + mechanism).createSession();
            Queue queue = session.createQueue(own() + mechanism);
            send(session, queue, mechanism);
            assertEquals(mechanism, text(session.createConsumer(queue)));
        }
    }

    /** The strongest mechanism is SCRAM, though the broker offers tokens as well. */
    @Test
    void tokenOfIssuerLogsInIfAsked() throws Exception {
        String token = System.getenv("SECURED_JWT");
        String asked = trusted + "&amqp.saslMechanisms=XOAUTH2";
        Session session = logIn("ann", token, asked).createSession();
        Queue queue = session.createQueue(own());
        send(session, queue, "by a token");
        assertEquals("by a token", text(session.createConsumer(queue)));
        logIn("ann");
    }

    @Test
    void wrongPasswordIsRefused() throws Exception {
        for (String eve : EVES) {
            String mechanism = eve.equals(EVES.get(0)) ? "" : "&amqp.saslMechanisms=PLAIN";
            logIn(eve, mechanism);
            var refusal = assertThrows(JMSSecurityException.class,
                    () -> logIn(eve, "wrong password", trusted + mechanism));
            String said = mechanism.isEmpty() ? "SCRAM-SHA-512" : "PLAIN";
            assertTrue(refusal.getMessage().contains(said), refusal.getMessage());
        }
    }

    @Test
    void ownQueueHasTransactions() throws Exception {
        Session session = logIn("ann").createSession(Session.SESSION_TRANSACTED);
        Queue queue = session.createQueue(own());
        MessageConsumer consumer = session.createConsumer(queue);
        send(session, queue, "undone");
        session.rollback();
        send(session, queue, "one", "two");
        session.commit();
        assertEquals(List.of("one", "two"), texts(consumer, 2));
        session.rollback();
        assertEquals(List.of("one", "two"), texts(consumer, 2));
        session.commit();
        assertNothing(consumer);
    }

    @Test
    void ownRequestIsAnsweredInTemporaryQueue() throws Exception {
        Session asking = logIn("ann").createSession();
        Queue requests = asking.createQueue(own());
        TemporaryQueue replies = asking.createTemporaryQueue();
        MessageConsumer replied = asking.createConsumer(replies);
        Message request = asking.createTextMessage("how are you?");
        request.setJMSReplyTo(replies);
        asking.createProducer(requests).send(request);

        Session answering = logIn("ann").createSession();
        Message taken = next(answering.createConsumer(requests));
        // A producer for any destination, as servers of requests use.
        MessageProducer producer = answering.createProducer(null);
        producer.send(taken.getJMSReplyTo(), answering.createTextMessage("well"));
        assertEquals("well", text(replied));
    }

    @Test
    void ownDurableSubscriptionGathers() throws Exception {
        String client = "&jms.clientID=" + name();
        Connection first = logIn("ann", client);
        Session session = first.createSession();
        Topic topic = session.createTopic(own());
        session.createDurableSubscriber(topic, "news").close();
        first.close();
        Session publishing = logIn("ann").createSession();
        send(publishing, topic, "meanwhile");
        Session again = logIn("ann", client).createSession();
        MessageConsumer subscriber = again.createDurableSubscriber(topic, "news");
        assertEquals("meanwhile", text(subscriber));
        subscriber.close();
        again.unsubscribe("news");
    }

    @Test
    void otherDestinationsAreDenied() throws Exception {
        Session root = logIn("root").createSession();
        Queue queue = root.createQueue(other());
        send(root, queue, "kept");
        Session session = logIn("ann", "&jms.clientID=" + name()).createSession();
        Topic topic = session.createTopic(other());
        assertDenied(() -> session.createProducer(queue));
        assertDenied(() -> session.createProducer(topic));
        assertDenied(() -> session.createConsumer(queue));
        assertDenied(() -> session.createConsumer(topic));
        assertDenied(() -> session.createDurableSubscriber(topic, "news"));
        assertDenied(() -> session.createBrowser(queue).getEnumeration());
        MessageProducer anywhere = session.createProducer(null);
        assertDenied(() -> anywhere.send(queue, session.createTextMessage("x")));
        // The same session goes on, and nothing has changed.
        Queue own = session.createQueue(own());
        anywhere.setDeliveryMode(DeliveryMode.PERSISTENT);
        anywhere.send(own, session.createTextMessage("served"));
        assertEquals("served", text(session.createConsumer(own)));
        assertEquals(List.of("kept"), rest(root.createConsumer(queue)));
    }

    @Test
    void transactionWithOtherQueueIsUndone() throws Exception {
        Session session = logIn("ann").createSession(Session.SESSION_TRANSACTED);
        Queue own = session.createQueue(own());
        Queue other = session.createQueue(other());
        MessageProducer anywhere = session.createProducer(null);
        anywhere.send(own, session.createTextMessage("x"));
        assertThrows(JMSException.class, () -> {
            anywhere.send(other, session.createTextMessage("x"));
            session.commit();
        });
        session.rollback();
        assertNothing(session.createConsumer(own));
    }
}
