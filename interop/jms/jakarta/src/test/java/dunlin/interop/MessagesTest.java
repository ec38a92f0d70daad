package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.Destination;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EmptySource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every type of message, header and property comes out as it went in. */
class MessagesTest extends Scenario {
    private static final String UNICODE = "Gr\u00fc\u00dfe, \u65e5\u672c\u8a9e, \ud83e\udd86, \u0000";

    private Session session;

    @BeforeEach
    void open() throws Exception {
        session = session();
    }

    /** Sends it and takes it back. */
    private Message pass(Message message) throws Exception {
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(message);
        try (MessageConsumer consumer = session.createConsumer(queue(session))) {
            return next(consumer);
        }
    }

    @ParameterizedTest
    @NullSource
    @EmptySource
    @ValueSource(strings = {"hello", UNICODE})
    void textMessages(String text) throws Exception {
        Message message = pass(session.createTextMessage(text));
        assertEquals(text, assertInstanceOf(TextMessage.class, message).getText());
    }

    @Test
    void messagesWithoutABody() throws Exception {
        Message message = session.createMessage();
        message.setStringProperty("key", "value");
        Message received = pass(message);
        assertFalse(received instanceof TextMessage);
        assertFalse(received instanceof BytesMessage);
        assertEquals("value", received.getStringProperty("key"));
    }

    @Test
    void bytesMessagesKeepEveryByte() throws Exception {
        byte[] all = new byte[256];
        for (int value = 0; value < all.length; value++) {
            all[value] = (byte) value;
        }
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(all);
        message.writeLong(Long.MIN_VALUE);
        message.writeUTF(UNICODE);
        BytesMessage received = assertInstanceOf(BytesMessage.class, pass(message));
        byte[] back = new byte[256];
        assertEquals(256, received.readBytes(back));
        assertArrayEquals(all, back);
        assertEquals(Long.MIN_VALUE, received.readLong());
        assertEquals(UNICODE, received.readUTF());
        assertEquals(-1, received.readBytes(back));
    }

    @Test
    void mapMessagesKeepEveryType() throws Exception {
        MapMessage message = session.createMapMessage();
        Map<String, Object> values = values();
        values.put("character", 'x');
        values.put("null", null);
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            message.setObject(entry.getKey(), entry.getValue());
        }
        message.setBytes("bytes", new byte[] {1, 0, -1});
        MapMessage received = assertInstanceOf(MapMessage.class, pass(message));
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            assertEquals(entry.getValue(), received.getObject(entry.getKey()), entry.getKey());
        }
        assertArrayEquals(new byte[] {1, 0, -1}, received.getBytes("bytes"));
        assertEquals(values.size() + 1, Collections.list(received.getMapNames()).size());
    }

    @Test
    void streamMessagesKeepTypesInOrder() throws Exception {
        StreamMessage message = session.createStreamMessage();
        Map<String, Object> values = values();
        for (Object value : values.values()) {
            message.writeObject(value);
        }
        message.writeBytes(new byte[] {1, 0, -1});
        StreamMessage received = assertInstanceOf(StreamMessage.class, pass(message));
        for (Object value : values.values()) {
            assertEquals(value, received.readObject());
        }
        assertArrayEquals(new byte[] {1, 0, -1}, (byte[]) received.readObject());
    }

    @Test
    void objectMessages() throws Exception {
        ArrayList<String> list = new ArrayList<>(List.of("a", UNICODE));
        ObjectMessage message = session.createObjectMessage(list);
        assertEquals(list, assertInstanceOf(ObjectMessage.class, pass(message)).getObject());
    }

    @Test
    void propertiesKeepValueAndType() throws Exception {
        Message message = session.createMessage();
        Map<String, Object> values = values();
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            message.setObjectProperty(entry.getKey(), entry.getValue());
        }
        Message received = pass(message);
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            assertEquals(entry.getValue(), received.getObjectProperty(entry.getKey()));
        }
        List<?> names = Collections.list(received.getPropertyNames());
        assertTrue(names.containsAll(values.keySet()), names.toString());
        assertFalse(received.propertyExists("another"));
    }

    private static Map<String, Object> values() {
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("yes", true);
        values.put("no", false);
        values.put("byte", Byte.MIN_VALUE);
        values.put("short", Short.MIN_VALUE);
        values.put("int", Integer.MIN_VALUE);
        values.put("small", 1);
        values.put("long", Long.MAX_VALUE);
        values.put("smallLong", 1L);
        values.put("float", 1.5e-30f);
        values.put("double", Math.PI);
        values.put("text", UNICODE);
        values.put("empty", "");
        return values;
    }

    @Test
    void messageIdAndTimestamp() throws Exception {
        Message message = session.createMessage();
        long before = System.currentTimeMillis();
        Message received = pass(message);
        assertTrue(received.getJMSMessageID().startsWith("ID:"));
        assertEquals(message.getJMSMessageID(), received.getJMSMessageID());
        assertEquals(message.getJMSTimestamp(), received.getJMSTimestamp());
        assertTrue(received.getJMSTimestamp() >= before);
    }

    @Test
    void messageIdAndTimestampAreOptional() throws Exception {
        MessageProducer producer = session.createProducer(queue(session));
        producer.setDisableMessageID(true);
        producer.setDisableMessageTimestamp(true);
        producer.send(session.createMessage());
        Message received = next(session.createConsumer(queue(session)));
        assertNull(received.getJMSMessageID());
        assertEquals(0, received.getJMSTimestamp());
    }

    @ParameterizedTest
    @ValueSource(strings = {"plain", "ID:a:1", "ID:AMQP_ULONG:1", "ID:AMQP_BINARY:00FF",
        "ID:AMQP_UUID:00112233-4455-6677-8899-aabbccddeeff", UNICODE})
    void correlationIds(String id) throws Exception {
        Message message = session.createMessage();
        message.setJMSCorrelationID(id);
        assertEquals(id, pass(message).getJMSCorrelationID());
    }

    @Test
    void correlationIdsOfBytes() throws Exception {
        byte[] id = {0, 1, -1};
        Message message = session.createMessage();
        message.setJMSCorrelationIDAsBytes(id);
        assertArrayEquals(id, pass(message).getJMSCorrelationIDAsBytes());
    }

    @Test
    void typeAndGroup() throws Exception {
        Message message = session.createMessage();
        message.setJMSType("order.placed");
        message.setStringProperty("JMSXGroupID", "customer 7");
        message.setIntProperty("JMSXGroupSeq", 3);
        Message received = pass(message);
        assertEquals("order.placed", received.getJMSType());
        assertEquals("customer 7", received.getStringProperty("JMSXGroupID"));
        assertEquals(3, received.getIntProperty("JMSXGroupSeq"));
    }

    @Test
    void unsetHeadersAreNull() throws Exception {
        Message received = pass(session.createMessage());
        assertNull(received.getJMSCorrelationID());
        assertNull(received.getJMSReplyTo());
        assertNull(received.getJMSType());
        assertEquals(0, received.getJMSExpiration());
        assertEquals(Message.DEFAULT_PRIORITY, received.getJMSPriority());
        assertFalse(received.getJMSRedelivered());
        assertEquals(1, received.getIntProperty("JMSXDeliveryCount"));
    }

    @Test
    void destinations() throws Exception {
        List<Destination> all = List.of(session.createQueue(name() + "-reply"), topic(session),
                session.createTemporaryQueue(), session.createTemporaryTopic());
        for (Destination reply : all) {
            Message message = session.createMessage();
            message.setJMSReplyTo(reply);
            Message received = pass(message);
            assertEquals(reply, received.getJMSReplyTo());
            assertEquals(queue(session), received.getJMSDestination());
        }
    }

    @Test
    void receivedMessageCanBeSentOn() throws Exception {
        Message message = session.createTextMessage("hello");
        message.setIntProperty("hops", 1);
        Message received = pass(message);
        Message again = pass(received);
        assertEquals("hello", text(again));
        assertEquals(1, again.getIntProperty("hops"));
        assertEquals(1, again.getIntProperty("JMSXDeliveryCount"));
    }
}
