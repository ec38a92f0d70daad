package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TransactionRolledBackException;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Transactions of more than anybody should have in one, and of too much. */
class LargeTransactionTest extends Scenario {
    private static final int MANY = 100_000;
    /** Together more than 256 MiB. */
    private static final int TOO_MANY = 19;
    private static final int LARGE = 14 << 20;

    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    void transactionOfHundredThousandMessages(int mode) throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        MessageConsumer other = session().createConsumer(queue);
        sendNumbered(session, queue, mode, MANY, 1_024);
        assertNothing(other);
        session.commit();
        other.close();
        MessageConsumer consumer = session.createConsumer(queue);
        for (int number = 0; number < MANY; number++) {
            assertEquals(number, next(consumer).getIntProperty("number"));
        }
        session.commit();
        assertNothing(consumer);
    }

    @ParameterizedTest
    @ValueSource(ints = {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT})
    @Needs(Feature.LIMITS)
    void oversizedTransactionIsRolledBack(int mode) throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        sendNumbered(session, queue, mode, TOO_MANY, LARGE);
        var error = assertThrows(TransactionRolledBackException.class, session::commit);
        assertTrue(error.getMessage().contains("a transaction takes at most"), error.getMessage());
        assertEquals(List.of(), left(queue));
        send(session, queue, "the next one");
        session.commit();
        assertEquals(List.of("the next one"), left(queue));
    }

    private static void sendNumbered(Session session, Queue to, int mode, int count, int bytes)
            throws Exception {
        byte[] body = new byte[bytes];
        try (MessageProducer producer = session.createProducer(to)) {
            producer.setDeliveryMode(mode);
            for (int number = 0; number < count; number++) {
                BytesMessage message = session.createBytesMessage();
                message.setIntProperty("number", number);
                message.writeBytes(body);
                producer.send(message);
            }
        }
    }
}
