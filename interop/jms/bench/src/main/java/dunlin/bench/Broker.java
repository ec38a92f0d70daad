package dunlin.bench;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;

/** A broker by the name that its figures get. Its URL says which client asks it. */
record Broker(String name, String url) {
    /** No answer for so long is an error: a measurement that hangs is none. */
    static final int ANSWER_MILLIS = 60_000;

    static Broker of(String word) {
        String[] parts = word.split("=", 2);
        if (parts.length != 2 || !Clients.know(parts[1])) {
            throw new IllegalArgumentException(word + "? NAME=URL of what a client here speaks");
        }
        return new Broker(parts[0], parts[1]);
    }

    /** A new connection, started. */
    Connection connect() throws JMSException {
        Connection connection = connectStopped();
        connection.start();
        return connection;
    }

    /** A new connection, on which nothing is received before it is started. */
    Connection connectStopped() throws JMSException {
        return Clients.connect(url, ANSWER_MILLIS);
    }
}
