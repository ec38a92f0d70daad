package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How messages are sent: delivery mode, priority, time to live, delay, destinations, sizes. */
class SendingTest extends Scenario {
    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void messageKeepsItsDeliveryMode(int mode) throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        producer.setDeliveryMode(mode);
        producer.send(session.createTextMessage("hello"));
        Message message = next(session.createConsumer(queue(session)));
        assertEquals(mode, message.getJMSDeliveryMode());
        assertEquals("hello", text(message));
    }

    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void higherPrioritiesComeFirst(int mode) throws Exception {
        Session session = connect("jms.forceSyncSend=true").createSession();
        MessageProducer producer = session.createProducer(queue(session));
        List<String> expected = new ArrayList<>();
        for (int priority = 9; priority >= 0; priority--) {
            expected.addAll(List.of(priority + "a", priority + "b"));
        }
        for (String round : List.of("a", "b")) {
            for (int priority = 0; priority <= 9; priority++) {
                Message message = session.createTextMessage(priority + round);
                producer.send(message, mode, priority, 0);
            }
        }
        assertEquals(expected, rest(session.createConsumer(queue(session))));
    }

    @Test
    void messageKeepsItsPriority() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (int priority = 0; priority <= 9; priority++) {
            producer.send(session.createMessage(), DeliveryMode.PERSISTENT, priority, 0);
            assertEquals(priority, next(consumer).getJMSPriority());
        }
    }

    @Test
    void messagesComeInOrder() throws Exception {
        Session session = session();
        String[] texts = IntStream.range(0, 500).mapToObj(Integer::toString).toArray(String[]::new);
        send(session, queue(session), texts);
        assertEquals(List.of(texts), texts(session.createConsumer(queue(session)), texts.length));
    }

    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void expiredMessageDoesNotCome(int mode) throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(session.createTextMessage("short"), mode, 4, 1);
        producer.send(session.createTextMessage("long"), mode, 4, 600_000);
        producer.send(session.createTextMessage("for ever"), mode, 4, 0);
        letPass(300);
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals(List.of("long", "for ever"), rest(consumer));
    }

    @Test
    void messageExpiringBeforeReceiveIsNotDelivered() throws Exception {
        Session session = connect("jms.prefetchPolicy.all=0").createSession();
        MessageConsumer consumer = session.createConsumer(queue(session));
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(session.createTextMessage("short"), DeliveryMode.PERSISTENT, 9, 1);
        letPass(300);
        assertNothing(consumer);
    }

    @Test
    void messageKeepsItsExpiration() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        producer.setTimeToLive(600_000);
        Message sent = session.createMessage();
        producer.send(sent);
        Message message = next(session.createConsumer(queue(session)));
        assertEquals(sent.getJMSExpiration(), message.getJMSExpiration());
        assertTrue(message.getJMSExpiration() >= message.getJMSTimestamp() + 600_000);
    }

    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void delayedMessageComesAfterItsTime(int mode) throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(queue(session));
        MessageProducer producer = session.createProducer(queue(session));
        producer.setDeliveryMode(mode);
        producer.setDeliveryDelay(500);
        producer.send(session.createTextMessage("later"));
        producer.setDeliveryDelay(0);
        producer.send(session.createTextMessage("now"));
        assertEquals("now", text(consumer));
        Message later = next(consumer);
        assertEquals("later", text(later));
        assertTrue(later.getJMSDeliveryTime() >= later.getJMSTimestamp() + 500);
        assertTrue(System.currentTimeMillis() >= later.getJMSDeliveryTime(), "not before its time");
    }

    @Test
    void delayedMessageReachesTopicSubscribers() throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(topic(session));
        MessageProducer producer = session.createProducer(topic(session));
        producer.setDeliveryDelay(300);
        producer.send(session.createTextMessage("later"));
        Message later = next(consumer);
        assertEquals("later", text(later));
        assertTrue(System.currentTimeMillis() >= later.getJMSDeliveryTime(), "not before its time");
    }

    @Test
    void producerSendsToManyDestinations() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        Topic topic = session.createTopic(name() + "-topic");
        TemporaryQueue temporary = session.createTemporaryQueue();
        MessageConsumer onQueue = session.createConsumer(queue);
        MessageConsumer onTopic = session.createConsumer(topic);
        MessageConsumer onTemporary = session.createConsumer(temporary);
        MessageProducer producer = session.createProducer(null);
        assertNull(producer.getDestination());
        producer.send(queue, session.createTextMessage("queue"));
        producer.send(topic, session.createTextMessage("topic"));
        producer.send(temporary, session.createTextMessage("temporary"));
        Message first = next(onQueue);
        assertEquals("queue", text(first));
        assertEquals(queue, first.getJMSDestination());
        Message second = next(onTopic);
        assertEquals("topic", text(second));
        assertEquals(topic, second.getJMSDestination());
        assertEquals("temporary", text(onTemporary));
        for (MessageConsumer consumer : List.of(onQueue, onTopic, onTemporary)) {
            assertNothing(consumer);
        }
    }

    @Test
    void queueAndTopicOfOneNameDiffer() throws Exception {
        Session session = session();
        MessageConsumer subscriber = session.createConsumer(topic(session));
        send(session, queue(session), "to the queue");
        send(session, topic(session), "to the topic");
        assertEquals(List.of("to the topic"), texts(subscriber, 1));
        assertNothing(subscriber);
        assertEquals(List.of("to the queue"), left(queue(session)));
    }

    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void sendsCompleteAsynchronouslyAndInOrder(int mode) throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        BlockingQueue<Object> done = new LinkedBlockingQueue<>();
        CompletionListener listener = new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                done.add(message);
            }

            @Override
            public void onException(Message message, Exception error) {
                done.add(error);
            }
        };
        producer.setDeliveryMode(mode);
        List<Message> sent = new ArrayList<>();
        List<String> texts = new ArrayList<>();
        for (int number = 0; number < 300; number++) {
            sent.add(session.createTextMessage("m" + number));
            texts.add("m" + number);
            producer.send(sent.get(number), listener);
        }
        for (Message message : sent) {
            assertEquals(message, done.poll(WAIT, TimeUnit.MILLISECONDS));
        }
        assertEquals(texts, rest(session.createConsumer(queue(session))));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 65_000, 1 << 20, 5 << 20})
    void messagesOfEverySizePass(int size) throws Exception {
        byte[] body = new byte[size];
        new Random(size).nextBytes(body);
        Session session = session();
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(body);
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(message);
        BytesMessage received = (BytesMessage) next(session.createConsumer(queue(session)));
        assertEquals(size, received.getBodyLength());
        byte[] back = new byte[size + 1];
        assertEquals(size, Math.max(0, received.readBytes(back)));
        assertArrayEquals(body, Arrays.copyOf(back, size));
    }

    @ParameterizedTest
    @ValueSource(ints = {Session.AUTO_ACKNOWLEDGE, Session.SESSION_TRANSACTED})
    @Needs(Feature.LIMITS)
    void oversizedMessageIsRefusedSessionContinues(int mode) throws Exception {
        Session session = session(mode);
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(new byte[17 << 20]);
        MessageProducer producer = session.createProducer(queue(session));
        JMSException error = assertThrows(JMSException.class, () -> {
            producer.send(message);
            session.commit();
        });
        assertTrue(error.getMessage().contains("message-size-exceeded"), error.getMessage());
        if (session.getTransacted()) {
            session.rollback();
        }
        send(session, queue(session), "small");
        if (session.getTransacted()) {
            session.commit();
        }
        assertEquals(List.of("small"), left(queue(session)));
    }

    @Test
    void largeMessagesReachEverySubscriber() throws Exception {
        byte[] body = new byte[2 << 20];
        new Random(1).nextBytes(body);
        Session session = session();
        MessageConsumer one = session.createConsumer(topic(session));
        MessageConsumer other = session().createConsumer(topic(session));
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(body);
        session.createProducer(topic(session)).send(message);
        assertArrayEquals(body, next(one).getBody(byte[].class));
        assertArrayEquals(body, next(other).getBody(byte[].class));
    }

    @Test
    void smallFramesCarryLargeMessages() throws Exception {
        byte[] body = new byte[300_000];
        new Random(2).nextBytes(body);
        Session session = connect("amqp.maxFrameSize=4096").createSession();
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(body);
        session.createProducer(queue(session)).send(message);
        Message received = next(session.createConsumer(queue(session)));
        assertArrayEquals(body, received.getBody(byte[].class));
    }

    @Test
    void presettledProducerLosesNothing() throws Exception {
        Session session = connect("jms.presettlePolicy.presettleProducers=true").createSession();
        String[] texts = IntStream.range(0, 3_000).mapToObj(Integer::toString)
                .toArray(String[]::new);
        send(session, queue(session), texts);
        assertEquals(List.of(texts), texts(session.createConsumer(queue(session)), texts.length));
    }
}
