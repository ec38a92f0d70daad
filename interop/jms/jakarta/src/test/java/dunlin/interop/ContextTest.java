package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Topic;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The simplified interface of JMS 2.0. */
class ContextTest extends Scenario {
    @Test
    void sendAndReceive() {
        JMSContext context = context(JMSContext.AUTO_ACKNOWLEDGE);
        Queue queue = context.createQueue(name());
        context.createProducer().send(queue, "hello");
        context.createProducer().send(queue, new byte[] {1, 2});
        context.createProducer().send(queue, Map.of("key", 7));
        context.createProducer().send(queue, new java.util.ArrayList<>(List.of("a")));
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals("hello", consumer.receiveBody(String.class, WAIT));
        assertEquals(2, consumer.receiveBody(byte[].class, WAIT).length);
        assertEquals(7, consumer.receiveBody(Map.class, WAIT).get("key"));
        assertEquals(List.of("a"), consumer.receiveBody(java.io.Serializable.class, WAIT));
        assertNull(consumer.receiveNoWait());
    }

    @Test
    void producersSettingsGoWithItsMessages() throws Exception {
        JMSContext context = context(JMSContext.AUTO_ACKNOWLEDGE);
        Queue queue = context.createQueue(name());
        context.createProducer()
                .setDeliveryMode(DeliveryMode.NON_PERSISTENT)
                .setPriority(7)
                .setTimeToLive(600_000)
                .setJMSCorrelationID("c")
                .setJMSType("t")
                .setJMSReplyTo(queue)
                .setProperty("number", 3)
                .send(queue, "hello");
        Message message = context.createConsumer(queue).receive(WAIT);
        assertEquals(DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
        assertEquals(7, message.getJMSPriority());
        assertTrue(message.getJMSExpiration() > System.currentTimeMillis());
        assertEquals("c", message.getJMSCorrelationID());
        assertEquals("t", message.getJMSType());
        assertEquals(queue, message.getJMSReplyTo());
        assertEquals(3, message.getIntProperty("number"));
        assertEquals("hello", message.getBody(String.class));
    }

    @Test
    void aDelay() {
        JMSContext context = context(JMSContext.AUTO_ACKNOWLEDGE);
        Queue queue = context.createQueue(name());
        context.createProducer().setDeliveryDelay(300).send(queue, "later");
        context.createProducer().send(queue, "now");
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals("now", consumer.receiveBody(String.class, WAIT));
        assertEquals("later", consumer.receiveBody(String.class, WAIT));
    }

    @Test
    void transactions() {
        JMSContext context = context(JMSContext.SESSION_TRANSACTED);
        Queue queue = context.createQueue(name());
        context.createProducer().send(queue, "undone");
        context.rollback();
        context.createProducer().send(queue, "done");
        context.commit();
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals("done", consumer.receiveBody(String.class, WAIT));
        context.rollback();
        assertEquals("done", consumer.receiveBody(String.class, WAIT));
        context.commit();
        assertNull(consumer.receiveNoWait());
    }

    @Test
    void clientAcknowledgement() {
        JMSContext context = context(JMSContext.CLIENT_ACKNOWLEDGE);
        Queue queue = context.createQueue(name());
        context.createProducer().send(queue, "1").send(queue, "2").send(queue, "3");
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals("1", consumer.receiveBody(String.class, WAIT));
        context.acknowledge();
        assertEquals("2", consumer.receiveBody(String.class, WAIT));
        context.recover();
        assertEquals("2", consumer.receiveBody(String.class, WAIT));
        assertEquals("3", consumer.receiveBody(String.class, WAIT));
        context.acknowledge();
        assertNull(consumer.receiveNoWait());
    }

    @Test
    void contextsShareAConnection() {
        JMSContext context = context(JMSContext.AUTO_ACKNOWLEDGE);
        JMSContext transacted = closing(context.createContext(JMSContext.SESSION_TRANSACTED));
        Queue queue = context.createQueue(name());
        transacted.createProducer().send(queue, "hello");
        JMSConsumer consumer = context.createConsumer(queue);
        assertNull(consumer.receiveNoWait());
        transacted.commit();
        assertEquals("hello", consumer.receiveBody(String.class, WAIT));
    }

    @Test
    void subscriptions() {
        JMSContext context = context(JMSContext.AUTO_ACKNOWLEDGE);
        Topic topic = context.createTopic(name());
        JMSConsumer plain = context.createConsumer(topic);
        JMSConsumer shared = context.createSharedConsumer(topic, name() + "-shared");
        JMSConsumer durable = context.createSharedDurableConsumer(topic, name() + "-durable");
        context.createProducer().send(topic, "hello");
        for (JMSConsumer consumer : List.of(plain, shared, durable)) {
            assertEquals("hello", consumer.receiveBody(String.class, WAIT));
            assertNull(consumer.receiveNoWait());
        }
        durable.close();
        context.unsubscribe(name() + "-durable");
    }

    @Test
    void browsing() throws Exception {
        JMSContext context = context(JMSContext.AUTO_ACKNOWLEDGE);
        Queue queue = context.createQueue(name());
        context.createProducer().send(queue, "1").send(queue, "2");
        try (QueueBrowser browser = context.createBrowser(queue)) {
            List<?> messages = Collections.list(browser.getEnumeration());
            assertEquals(2, messages.size());
            assertEquals("1", text((Message) messages.get(0)));
        }
    }

    @Test
    void asynchronousSending() throws Exception {
        JMSContext context = context(JMSContext.AUTO_ACKNOWLEDGE);
        Queue queue = context.createQueue(name());
        BlockingQueue<Object> done = new LinkedBlockingQueue<>();
        context.createProducer().setAsync(new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                done.add("completed");
            }

            @Override
            public void onException(Message message, Exception error) {
                done.add(error);
            }
        }).send(queue, "hello");
        assertEquals("completed", done.poll(WAIT, TimeUnit.MILLISECONDS));
        BlockingQueue<Message> heard = new LinkedBlockingQueue<>();
        context.createConsumer(queue).setMessageListener(heard::add);
        assertEquals("hello", text(heard.poll(WAIT, TimeUnit.MILLISECONDS)));
    }
}
