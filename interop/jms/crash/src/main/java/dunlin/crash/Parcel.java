package dunlin.crash;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Session;
import java.util.Arrays;
import java.util.Random;

/** A message that says what it is, so that a changed one is noticed. */
final class Parcel {
    private Parcel() {}

    /** Its transaction, which of its messages it is, and how many there are. */
    static String name(Ledger.Unit unit, int index, int size) {
        return unit.number() + "-" + index + "-" + size;
    }

    /** With so many bytes; JMS gives no body for an empty one. */
    static Message pack(Session session, String name, int bytes) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.setStringProperty("parcel", name);
        message.setIntProperty("bytes", bytes);
        message.writeBytes(body(name, bytes));
        return message;
    }

    /** Notes that it came, and whether it is as it was packed. */
    static void note(Message message, Ledger ledger, Ledger.Unit unit, int epoch, Place place)
            throws JMSException {
        String name = message.getStringProperty("parcel");
        if (name == null) {
            ledger.broken(epoch, place, "nobody sent " + message);
            return;
        }
        unit.got(epoch, name, place);
        byte[] expected = body(name, message.getIntProperty("bytes"));
        if (!Arrays.equals(expected, message.getBody(byte[].class))) {
            ledger.broken(epoch, place, name + " has a changed body");
        }
    }

    private static byte[] body(String name, int bytes) {
        byte[] body = new byte[bytes];
        new Random(name.hashCode()).nextBytes(body);
        return body;
    }
}
