package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;

import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLParameters;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** Jedis with TLS, users and rights, by RESP2 and by RESP3. */
@EnabledIfEnvironmentVariable(named = "SECURED_ADDR", matches = ".+")
class SecuredJedisTest {
    private final String own = Secured.freshName("ann");
    private final String other = Secured.freshName("other");

    /** Users who have logged in from here do not wait for failures of others. */
    @BeforeEach
    void logIn() throws Exception {
        for (String user : List.of("ann", "root")) {
            connect(RedisProtocol.RESP2, user, Secured.PASSWORD).close();
        }
    }

    private static Jedis connect(RedisProtocol protocol, String user, String password)
            throws Exception {
        return connect(config(protocol, user, password).sslSocketFactory(Secured.sockets()));
    }

    private static Jedis connect(DefaultJedisClientConfig.Builder config) {
        return new Jedis(HostAndPort.from(Secured.ADDRESS), config.build());
    }

    private static DefaultJedisClientConfig.Builder config(
            RedisProtocol protocol, String user, String password) {
        // Without it Jedis does not compare the name in the certificate.
        SSLParameters parameters = new SSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        return DefaultJedisClientConfig.builder().protocol(protocol).socketTimeoutMillis(20_000)
                .user(user).password(password).ssl(true).sslParameters(parameters);
    }

    private static void assertRefused(String word, Executable command) {
        var refusal = assertThrows(JedisDataException.class, command);
        assertTrue(refusal.getMessage().contains(word), refusal.getMessage());
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void unknownRootIsRefused(RedisProtocol protocol) {
        var refusal = assertThrows(JedisConnectionException.class,
                () -> connect(config(protocol, "ann", Secured.PASSWORD)).ping());
        assertInstanceOf(SSLHandshakeException.class, refusal.getCause());
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void wrongPasswordIsRefused(RedisProtocol protocol) throws Exception {
        String eve = protocol == RedisProtocol.RESP2 ? "eve-1" : "eve-2";
        connect(protocol, eve, Secured.PASSWORD).close();
        var refusal = assertThrows(JedisAccessControlException.class,
                () -> connect(protocol, eve, "wrong password"));
        assertTrue(refusal.getMessage().startsWith("WRONGPASS"), refusal.getMessage());
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void ownNamesServeAllCommands(RedisProtocol protocol) throws Exception {
        try (Jedis ann = connect(protocol, "ann", Secured.PASSWORD)) {
            assertEquals("ann", ann.aclWhoAmI());
            assertEquals(2, ann.rpush(own, "1", "2"));
            assertEquals("1", ann.lpop(own));
            assertEquals("OK", ann.set(own + ".value", "x"));
            assertEquals("x", ann.get(own + ".value"));
            var transaction = ann.multi();
            Response<Long> pushed = transaction.rpush(own, "3");
            Response<String> popped = transaction.lpop(own);
            transaction.exec();
            assertEquals(2, pushed.get());
            assertEquals("2", popped.get());
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void ownChannelCarriesMessages(RedisProtocol protocol) throws Exception {
        BlockingQueue<String> heard = new ArrayBlockingQueue<>(10);
        JedisPubSub subscription = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                heard.add("subscribed");
            }

            @Override
            public void onMessage(String channel, String message) {
                heard.add(message);
                unsubscribe();
            }
        };
        try (Jedis subscriber = connect(protocol, "ann", Secured.PASSWORD);
                Jedis publisher = connect(protocol, "ann", Secured.PASSWORD)) {
            Thread listening = new Thread(() -> subscriber.subscribe(subscription, own));
            listening.start();
            assertEquals("subscribed", heard.poll(20, TimeUnit.SECONDS));
            assertEquals(1, publisher.publish(own, "hello"));
            assertEquals("hello", heard.poll(20, TimeUnit.SECONDS));
            listening.join();
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void otherNamesAreRefused(RedisProtocol protocol) throws Exception {
        try (Jedis ann = connect(protocol, "ann", Secured.PASSWORD);
                Jedis root = connect(protocol, "root", Secured.PASSWORD)) {
            root.rpush(other, "kept");
            for (Executable command : List.<Executable>of(
                    () -> ann.rpush(other, "x"),
                    () -> ann.lpop(other),
                    () -> ann.set(other, "x"),
                    () -> ann.get(other),
                    () -> ann.publish(other, "x"),
                    () -> ann.subscribe(new JedisPubSub() {}, other),
                    () -> ann.del(own))) {
                assertRefused("NOPERM", command);
            }
            var transaction = ann.multi();
            transaction.rpush(own, "x");
            transaction.rpush(other, "x");
            assertRefused("NOPERM", transaction::exec);
            // The same connection goes on, and nothing has changed.
            assertEquals(1, ann.rpush(own, "x"));
            assertEquals(List.of("kept"), root.lrange(other, 0, -1));
        }
    }
}
