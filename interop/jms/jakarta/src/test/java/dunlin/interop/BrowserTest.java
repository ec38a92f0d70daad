package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Looking at a queue without changing it. */
class BrowserTest extends Scenario {
    private static List<String> browse(QueueBrowser browser) throws JMSException {
        List<String> texts = new ArrayList<>();
        Enumeration<?> messages = browser.getEnumeration();
        while (messages.hasMoreElements()) {
            texts.add(text((Message) messages.nextElement()));
        }
        return texts;
    }

    @Test
    void browserShowsAllAndRemovesNone() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        send(session, queue, "1", "2", "3");
        QueueBrowser browser = session.createBrowser(queue);
        assertEquals(List.of("1", "2", "3"), browse(browser));
        assertEquals(List.of("1", "2", "3"), browse(browser));
        send(session, queue, "4");
        assertEquals(List.of("1", "2", "3", "4"), browse(browser));
        Message first = next(session.createConsumer(queue));
        assertFalse(first.getJMSRedelivered());
        assertEquals(1, first.getIntProperty("JMSXDeliveryCount"));
    }

    @Test
    void browserOfEmptyQueueShowsNothing() throws Exception {
        Session session = session();
        assertEquals(List.of(), browse(session.createBrowser(queue(session))));
    }

    @Test
    void browserShowsOrderOfPriorities() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        for (int priority : new int[] {2, 8, 4}) {
            producer.send(session.createTextMessage("p" + priority), DeliveryMode.PERSISTENT,
                    priority, 0);
        }
        assertEquals(List.of("p8", "p4", "p2"), browse(session.createBrowser(queue(session))));
    }

    @Test
    void browserShowsMoreThanPrefetched() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        String[] texts = IntStream.range(0, 3_500).mapToObj(Integer::toString)
                .toArray(String[]::new);
        send(session, queue, texts);
        session.commit();
        assertEquals(List.of(texts), browse(session().createBrowser(queue)));
        assertEquals(List.of(texts), left(queue));
    }

    /**
     * The client asks for two messages and, when they do not come at once, for what is there now. The
     * answer waits for a busy log; by then the two have come, and two more are asked for.
     */
    @Test
    void browserShowsAllBesideBusyLog() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        String[] texts = IntStream.range(0, 150).mapToObj(Integer::toString)
                .toArray(String[]::new);
        send(session, queue, texts);
        session.commit();
        Session few = connect("jms.prefetchPolicy.queueBrowserPrefetch=2").createSession();
        String large = "x".repeat(1 << 20);
        AtomicBoolean done = new AtomicBoolean();
        ExecutorService aside = Executors.newFixedThreadPool(2);
        closing(aside::shutdownNow);
        List<Future<?>> writers = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            Session writing = session();
            Queue busy = writing.createQueue(name() + "-busy-" + number);
            writers.add(aside.submit(() -> {
                while (!done.get()) {
                    send(writing, busy, large);
                }
                return null;
            }));
        }
        for (int round = 0; round < 10; round++) {
            assertEquals(List.of(texts), browse(few.createBrowser(queue)));
        }
        done.set(true);
        for (Future<?> writer : writers) {
            writer.get(WAIT, TimeUnit.MILLISECONDS);
        }
    }

    @Test
    void browserShowsSelectedMessages() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        for (int number = 0; number < 10; number++) {
            TextMessage message = session.createTextMessage("m" + number);
            message.setIntProperty("number", number);
            producer.send(message);
        }
        QueueBrowser browser = session.createBrowser(queue(session), "number > 6");
        assertEquals(List.of("m7", "m8", "m9"), browse(browser));
        assertEquals(10, left(queue(session)).size());
    }

    @Test
    void browserDoesNotDisturbConsumers() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        send(session, queue, "1", "2", "3", "4");
        Enumeration<?> messages = session.createBrowser(queue).getEnumeration();
        assertEquals("1", text((Message) messages.nextElement()));
        MessageConsumer consumer = session().createConsumer(queue);
        assertEquals(List.of("1", "2", "3", "4"), texts(consumer, 4));
        assertNothing(consumer);
    }

    @Test
    void browserHidesUncommittedMessages() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        send(session, queue, "1");
        Session other = session();
        assertEquals(List.of(), browse(other.createBrowser(queue)));
        session.commit();
        assertEquals(List.of("1"), browse(other.createBrowser(queue)));
    }
}
