package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.args.ListPosition;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.LPosParams;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;

/** Jedis by RESP2 and by RESP3. */
class JedisTest {
    private static final HostAndPort SERVER = HostAndPort.from(System.getenv("REDIS_ADDR"));
    private static final AtomicInteger NUMBERS = new AtomicInteger();

    private static String freshKey() {
        return "java-" + ProcessHandle.current().pid() + "-" + NUMBERS.incrementAndGet();
    }

    private static Jedis connect(RedisProtocol protocol) {
        var config = DefaultJedisClientConfig.builder()
                .protocol(protocol).socketTimeoutMillis(20_000).clientName("tester").build();
        return new Jedis(SERVER, config);
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void queueIsFirstInFirstOut(RedisProtocol protocol) {
        String key = freshKey();
        try (Jedis client = connect(protocol)) {
            for (int number = 0; number < 50; number++) {
                assertEquals(number + 1, client.lpush(key, String.valueOf(number)));
            }
            for (int number = 0; number < 50; number++) {
                assertEquals(List.of(key, String.valueOf(number)), client.brpop(1, key));
            }
            assertNull(client.rpop(key));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void elementsAreAnyBytes(RedisProtocol protocol) {
        byte[] key = freshKey().getBytes();
        byte[] binary = new byte[100_000];
        for (int at = 0; at < binary.length; at++) {
            binary[at] = (byte) at;
        }
        try (Jedis client = connect(protocol)) {
            assertEquals(2, client.rpush(key, binary, new byte[0]));
            assertArrayEquals(binary, client.lrange(key, 0, -1).get(0));
            assertArrayEquals(binary, client.lpop(key));
            assertEquals(0, client.lpop(key).length);
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void placesAndMoves(RedisProtocol protocol) {
        String key = freshKey();
        String other = freshKey();
        try (Jedis client = connect(protocol)) {
            client.rpush(key, "a", "b", "c", "a");
            assertEquals(List.of(0L, 3L), client.lpos(key, "a", LPosParams.lPosParams(), 0));
            assertEquals(5, client.linsert(key, ListPosition.AFTER, "b", "x"));
            assertEquals("OK", client.lset(key, -1, "z"));
            assertThrows(JedisDataException.class, () -> client.lset(key, 9, "x"));
            assertEquals("a", client.lmove(key, other, ListDirection.LEFT, ListDirection.LEFT));
            assertEquals("z", client.rpoplpush(key, other));
            assertEquals(List.of("z", "a"), client.lrange(other, 0, -1));
            var popped = client.lmpop(ListDirection.RIGHT, 2, key, other);
            assertEquals(key, popped.getKey());
            assertEquals(List.of("c", "x"), popped.getValue());
            assertEquals(1, client.lrem(other, -1, "a"));
            assertEquals("OK", client.ltrim(other, 1, 0));
            assertEquals(0, client.llen(other));
            assertNull(client.lmove(other, key, ListDirection.LEFT, ListDirection.LEFT));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void waitingClientsAreServed(RedisProtocol protocol) throws InterruptedException {
        String key = freshKey();
        BlockingQueue<String> heard = new ArrayBlockingQueue<>(3);
        List<Thread> workers = new ArrayList<>();
        for (int worker = 0; worker < 3; worker++) {
            Thread thread = new Thread(() -> {
                try (Jedis client = connect(protocol)) {
                    heard.add(client.blpop(0, key).get(1));
                }
            });
            thread.start();
            workers.add(thread);
        }
        try (Jedis client = connect(protocol)) {
            client.rpush(key, "x", "x", "x");
            for (Thread worker : workers) {
                worker.join();
            }
            assertEquals(3, heard.size());
            assertNull(client.blpop(0.02, key));
            assertNull(client.blmove(key, key, ListDirection.LEFT, ListDirection.LEFT, 0.02));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void transactions(RedisProtocol protocol) {
        String key = freshKey();
        try (Jedis client = connect(protocol); Jedis other = connect(protocol)) {
            var transaction = client.multi();
            transaction.rpush(key, "a", "b");
            Response<List<String>> all = transaction.lrange(key, 0, -1);
            transaction.get(key);
            List<Object> results = transaction.exec();
            assertEquals(List.of("a", "b"), all.get());
            assertTrue(results.get(2) instanceof JedisDataException);
            client.watch(key);
            other.lpop(key);
            var late = client.multi();
            late.rpush(key, "late");
            assertNull(late.exec());
            assertEquals(1, client.llen(key));
            var discarded = client.multi();
            discarded.del(key);
            discarded.discard();
            assertEquals(1, client.llen(key));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void messages(RedisProtocol protocol) throws InterruptedException {
        String channel = freshKey();
        BlockingQueue<String> heard = new ArrayBlockingQueue<>(10);
        JedisPubSub listener = new JedisPubSub() {
            @Override
            public void onMessage(String from, String message) {
                heard.add(from + " " + message);
            }

            @Override
            public void onSubscribe(String to, int count) {
                heard.add("subscribed " + count);
            }
        };
        Thread thread = new Thread(() -> {
            try (Jedis client = connect(protocol)) {
                client.subscribe(listener, channel);
            }
        });
        thread.start();
        assertEquals("subscribed 1", heard.poll(10, TimeUnit.SECONDS));
        try (Jedis client = connect(protocol)) {
            assertEquals(1, client.publish(channel, "hello"));
            assertEquals(channel + " hello", heard.poll(10, TimeUnit.SECONDS));
            listener.unsubscribe();
            thread.join();
            assertEquals(0, client.publish(channel, "gone"));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void keysAndValues(RedisProtocol protocol) {
        String key = freshKey();
        String list = freshKey();
        try (Jedis client = connect(protocol)) {
            assertEquals("OK", client.set(key, "v", SetParams.setParams().nx().ex(100)));
            assertNull(client.set(key, "w", SetParams.setParams().nx()));
            assertEquals(100, client.ttl(key));
            assertEquals("v", client.setGet(key, "w"));
            assertEquals("w", client.getDel(key));
            client.rpush(list, "x");
            assertEquals("list", client.type(list));
            var found = client.scan(ScanParams.SCAN_POINTER_START,
                    new ScanParams().match(list).count(1_000));
            assertTrue(found.getResult().contains(list));
            assertEquals(1, client.expire(list, 100));
            assertEquals(1, client.persist(list));
            assertEquals(1, client.del(key, list));
            assertEquals("tester", client.clientGetname());
            assertTrue(client.info("server").contains("redis_version:7."));
            assertEquals("PONG", client.ping());
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void pipelineIsAnsweredInOrder(RedisProtocol protocol) {
        String key = freshKey();
        try (Jedis client = connect(protocol)) {
            var pipeline = client.pipelined();
            for (int number = 0; number < 500; number++) {
                pipeline.rpush(key, "x");
            }
            List<Object> lengths = pipeline.syncAndReturnAll();
            for (int number = 0; number < 500; number++) {
                assertEquals((long) number + 1, lengths.get(number));
            }
        }
    }
}
