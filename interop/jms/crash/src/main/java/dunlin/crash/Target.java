package dunlin.crash;

import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Session;

/** Where messages are sent to, and in which places they are then. */
enum Target {
    ORDERS("orders"),
    BILLS("bills"),
    RECEIPTS("receipts"),
    HELD("held"),
    NEWS("east,west");

    private final String places;

    Target(String places) {
        this.places = places;
    }

    String places() {
        return places;
    }

    int copies() {
        return this == NEWS ? 2 : 1;
    }

    Destination in(Session session) throws JMSException {
        return this == NEWS ? session.createTopic(Place.TOPIC) : session.createQueue(places);
    }
}
