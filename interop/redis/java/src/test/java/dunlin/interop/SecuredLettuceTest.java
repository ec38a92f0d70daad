package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLHandshakeException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Lettuce with TLS, users and rights, by RESP2 and by RESP3. */
@EnabledIfEnvironmentVariable(named = "SECURED_ADDR", matches = ".+")
class SecuredLettuceTest {
    private final String own = Secured.freshName("ann");
    private final String other = Secured.freshName("other");
    private final List<RedisClient> clients = new ArrayList<>();

    @AfterEach
    void shutDown() {
        clients.forEach(client -> client.shutdown(Duration.ZERO, Duration.ofSeconds(5)));
    }

    private RedisClient client(
            ProtocolVersion protocol, String user, String password, boolean trusts) {
        String[] address = Secured.ADDRESS.split(":");
        RedisURI uri = RedisURI.builder().withHost(address[0])
                .withPort(Integer.parseInt(address[1])).withSsl(true)
                .withAuthentication(user, password).withTimeout(Duration.ofSeconds(20)).build();
        var trust = SslOptions.builder();
        if (trusts) {
            trust.trustManager(Secured.root().toFile());
        }
        RedisClient client = RedisClient.create(uri);
        client.setOptions(ClientOptions.builder().protocolVersion(protocol)
                .autoReconnect(false).sslOptions(trust.build()).build());
        clients.add(client);
        return client;
    }

    private RedisClient client(ProtocolVersion protocol, String user) {
        return client(protocol, user, Secured.PASSWORD, true);
    }

    private RedisCommands<String, String> connect(ProtocolVersion protocol, String user) {
        return client(protocol, user).connect().sync();
    }

    /** Finds a word in an error of the client or in a cause of it. */
    private static void assertRefused(String word, Executable command) {
        Throwable refusal = assertThrows(RedisException.class, command);
        List<String> said = new ArrayList<>();
        for (Throwable cause = refusal; cause != null; cause = cause.getCause()) {
            said.add(cause.toString());
        }
        assertTrue(said.stream().anyMatch(text -> text.contains(word)), said.toString());
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void unknownRootIsRefused(ProtocolVersion protocol) {
        assertRefused(SSLHandshakeException.class.getSimpleName(),
                () -> client(protocol, "ann", Secured.PASSWORD, false).connect());
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void wrongPasswordIsRefused(ProtocolVersion protocol) {
        String eve = protocol == ProtocolVersion.RESP2 ? "eve-3" : "eve-4";
        connect(protocol, eve);
        RedisClient wrong = client(protocol, eve, "wrong password", true);
        assertRefused("WRONGPASS", wrong::connect);
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void ownNamesServeAllCommands(ProtocolVersion protocol) {
        var ann = connect(protocol, "ann");
        assertEquals("ann", ann.aclWhoami());
        assertEquals(2, ann.rpush(own, "1", "2"));
        assertEquals("1", ann.lpop(own));
        assertEquals("OK", ann.set(own + ".value", "x"));
        assertEquals("x", ann.get(own + ".value"));
        ann.multi();
        ann.rpush(own, "3");
        ann.lpop(own);
        var results = ann.exec();
        assertEquals(List.of(2L, "2"), results.stream().toList());
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void ownChannelCarriesMessages(ProtocolVersion protocol) throws Exception {
        BlockingQueue<String> heard = new ArrayBlockingQueue<>(10);
        var subscriber = client(protocol, "ann").connectPubSub();
        subscriber.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String message) {
                heard.add(message);
            }
        });
        subscriber.sync().subscribe(own);
        assertEquals(1, connect(protocol, "ann").publish(own, "hello"));
        assertEquals("hello", heard.poll(20, TimeUnit.SECONDS));
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void otherNamesAreRefused(ProtocolVersion protocol) {
        var root = connect(protocol, "root");
        var ann = connect(protocol, "ann");
        root.rpush(other, "kept");
        for (Executable command : List.<Executable>of(
                () -> ann.rpush(other, "x"),
                () -> ann.lpop(other),
                () -> ann.set(other, "x"),
                () -> ann.get(other),
                () -> ann.publish(other, "x"),
                () -> ann.del(own))) {
            assertRefused("NOPERM", command);
        }
        // The same connection goes on, and nothing has changed.
        assertEquals(1, ann.rpush(own, "x"));
        assertEquals(List.of("kept"), root.lrange(other, 0, -1));
    }
}
