package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How messages reach consumers: waiting, not waiting, listening, fetching ahead or not. */
class ReceivingTest extends Scenario {
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 1000})
    void receiveNoWaitGivesReadyMessages(int prefetch) throws Exception {
        Session session = connect("jms.prefetchPolicy.all=" + prefetch).createSession();
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertNothing(consumer);
        send(session, queue(session), "1", "2");
        assertEquals(List.of("1", "2"), rest(consumer));
        assertNothing(consumer);
        send(session, queue(session), "3");
        assertEquals(List.of("3"), rest(consumer));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 1000})
    void receiveEndsWithItsTime(int prefetch) throws Exception {
        Session session = connect("jms.prefetchPolicy.all=" + prefetch).createSession();
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertNull(consumer.receive(50));
        send(session, queue(session), "1");
        assertEquals("1", text(consumer));
        assertNull(consumer.receive(50));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1000})
    void receiveWaitsForWhatComes(int prefetch) throws Exception {
        Session session = connect("jms.prefetchPolicy.all=" + prefetch).createSession();
        MessageConsumer consumer = session.createConsumer(queue(session));
        ExecutorService waiting = Executors.newSingleThreadExecutor();
        try {
            Future<Message> message = waiting.submit(() -> consumer.receive());
            sendAside(queue(session), "1");
            assertEquals("1", text(message.get(WAIT, TimeUnit.MILLISECONDS)));
        } finally {
            waiting.shutdownNow();
        }
    }

    @Test
    void closingEndsAReceiveThatWaits() throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(queue(session));
        ExecutorService waiting = Executors.newSingleThreadExecutor();
        try {
            CountDownLatch begun = new CountDownLatch(1);
            Future<Message> message = waiting.submit(() -> {
                begun.countDown();
                return consumer.receive();
            });
            assertTrue(begun.await(WAIT, TimeUnit.MILLISECONDS));
            consumer.close();
            assertNull(ended(message));
        } finally {
            waiting.shutdownNow();
        }
    }

    /** Its message; none when the consumer was closed even before it began to wait. */
    private static Message ended(Future<Message> message) throws Exception {
        try {
            return message.get(WAIT, TimeUnit.MILLISECONDS);
        } catch (java.util.concurrent.ExecutionException error) {
            assertTrue(error.getCause() instanceof jakarta.jms.IllegalStateException);
            return null;
        }
    }

    @Test
    void withoutFetchingAheadConsumersShare() throws Exception {
        Connection connection = connect("jms.prefetchPolicy.all=0");
        Session one = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Session other = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = one.createConsumer(queue(one));
        MessageConsumer second = other.createConsumer(queue(other));
        send(one, queue(one), "1", "2", "3", "4");
        assertEquals("1", text(first));
        assertEquals("2", text(second));
        assertEquals("3", text(second));
        assertEquals("4", text(first));
        assertNothing(first);
        assertNothing(second);
    }

    @Test
    void stoppedConnectionDeliversNothing() throws Exception {
        Connection connection = closing(Broker.factory().createConnection());
        Session session = connection.createSession();
        send(session, queue(session), "1", "2");
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertNull(consumer.receive(50));
        connection.start();
        assertEquals("1", text(consumer));
        connection.stop();
        assertNull(consumer.receive(50));
        connection.start();
        assertEquals("2", text(consumer));
    }

    @Test
    void listenerHearsEverythingInOrder() throws Exception {
        Session session = session();
        BlockingQueue<Message> heard = new LinkedBlockingQueue<>();
        session.createConsumer(queue(session)).setMessageListener(heard::add);
        List<String> texts = IntStream.range(0, 2_500).mapToObj(Integer::toString).toList();
        sendAside(queue(session), texts.toArray(String[]::new));
        List<String> seen = new ArrayList<>();
        while (seen.size() < texts.size()) {
            seen.add(text(heard.poll(WAIT, TimeUnit.MILLISECONDS)));
        }
        assertEquals(texts, seen);
    }

    @Test
    void consumersTakeTurns() throws Exception {
        Session one = session();
        Session other = session();
        MessageConsumer first = one.createConsumer(queue(one));
        MessageConsumer second = other.createConsumer(queue(other));
        String[] texts = IntStream.range(0, 100).mapToObj(Integer::toString).toArray(String[]::new);
        sendAside(queue(one), texts);
        List<String> all = rest(first);
        int share = all.size();
        all.addAll(rest(second));
        assertTrue(share > 0 && share < texts.length, share + " of " + texts.length);
        assertEquals(List.of(texts), all.stream().sorted(byNumber()).toList());
    }

    private static java.util.Comparator<String> byNumber() {
        return java.util.Comparator.comparingInt(Integer::parseInt);
    }

    @Test
    void manySessionsOfOneConnection() throws Exception {
        Connection connection = connect();
        for (int number = 0; number < 100; number++) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name() + number);
            send(session, queue, "m" + number);
            assertEquals("m" + number, text(session.createConsumer(queue)));
            if (number % 2 == 0) {
                session.close();
            }
        }
    }

    @Test
    void sessionHasManyConsumersAndProducers() throws Exception {
        Session session = session();
        List<MessageConsumer> consumers = new ArrayList<>();
        List<MessageProducer> producers = new ArrayList<>();
        for (int number = 0; number < 50; number++) {
            Queue queue = session.createQueue(name() + number);
            consumers.add(session.createConsumer(queue));
            producers.add(session.createProducer(queue));
        }
        for (int number = 0; number < 50; number++) {
            producers.get(number).send(session.createTextMessage("m" + number));
        }
        for (int number = 0; number < 50; number++) {
            assertEquals(List.of("m" + number), rest(consumers.get(number)));
        }
    }

    @Test
    void closedObjectsThrow() throws Exception {
        Connection connection = connect();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(queue(session));
        MessageProducer producer = session.createProducer(queue(session));
        consumer.close();
        producer.close();
        assertThrows(JMSException.class, consumer::receiveNoWait);
        assertThrows(JMSException.class, () -> producer.send(session.createMessage()));
        session.close();
        assertThrows(JMSException.class, () -> session.createConsumer(queue(session)));
        connection.close();
        assertThrows(JMSException.class, connection::createSession);
        connection.close();
    }
}
