package dunlin.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.qpid.jms.message.JmsTextMessage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The language of selectors, and consumers that have one. */
class SelectorTest extends Scenario {
    /** Fills the queue with messages whose texts are the numbers from 1. */
    private void fill(Session session) throws JMSException {
        put(session, 1, "colour", "red", "weight", 10, "fragile", true);
        put(session, 2, "colour", "blue", "weight", 25L, "fragile", false);
        put(session, 3, "colour", "Red", "weight", 2.5, "name", "O'Hara");
        put(session, 4, "weight", (byte) 7, "name", "50% off", "big", Long.MAX_VALUE);
        put(session, 5, "colour", "green", "name", "a_b", "ratio", 0.5f);
        put(session, 6, "colour", "", "name", "a.b*c", "weight", -3);
        put(session, 7);
    }

    private void put(Session session, int number, Object... properties) throws JMSException {
        TextMessage message = session.createTextMessage(Integer.toString(number));
        for (int index = 0; index < properties.length; index += 2) {
            message.setObjectProperty((String) properties[index], properties[index + 1]);
        }
        message.setJMSType("type" + number % 2);
        message.setJMSCorrelationID("c" + number);
        MessageProducer producer = session.createProducer(queue(session));
        int mode = number == 5 ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT;
        // All of one priority but the last, so that the order stays.
        producer.send(message, mode, number == 7 ? 3 : 4, 0);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "colour = 'red'                                 | 1",
        "colour <> 'red'                                | 2356",
        "colour = ''                                    | 6",
        "colour IS NULL                                 | 47",
        "colour IS NOT NULL                             | 12356",
        "Colour IS NOT NULL                             | -",
        "NOT (colour = 'red')                           | 2356",
        "colour IN ('red', 'green')                     | 15",
        "colour NOT IN ('red', 'green')                 | 236",
        "colour LIKE 'r%'                               | 1",
        "colour LIKE '_ed'                              | 13",
        "colour LIKE '%e%'                              | 1235",
        "colour LIKE '%'                                | 12356",
        "colour NOT LIKE '%e%'                          | 6",
        "name LIKE 'a!_b' ESCAPE '!'                    | 5",
        "name LIKE 'a_b'                                | 5",
        "name LIKE 'a_b%'                               | 56",
        "name LIKE '%\\%%' ESCAPE '\\'                  | 4",
        "name LIKE 'a.b*c'                              | 6",
        "name LIKE 'a.*'                                | -",
        "name = 'O''Hara'                               | 3",
        "weight = 10                                    | 1",
        "weight = 10.0                                  | 1",
        "weight > 7                                     | 12",
        "weight >= 7                                    | 124",
        "weight < 7                                     | 36",
        "weight <= 2.5                                  | 36",
        "weight <> 10                                   | 2346",
        "weight = -3                                    | 6",
        "weight BETWEEN 2.5 AND 10                      | 134",
        "weight NOT BETWEEN 2.5 AND 10                  | 26",
        "weight + 5 = 15                                | 1",
        "weight * 2 - 5 = 15                            | 1",
        "weight / 5 = 5                                 | 2",
        "2 + 3 * 4 = 14                                 | 123456@",
        "(2 + 3) * 4 = 20                               | 123456@",
        "-weight = 3                                    | 6",
        "weight = 1.0e1                                 | 1",
        "weight = 0x0A                                  | 1",
        "ratio = 0.5                                    | 5",
        "big = 9223372036854775807                      | 4",
        "big > 9007199254740992                         | 4",
        "fragile                                        | 1",
        "fragile = TRUE                                 | 1",
        "fragile = false                                | 2",
        "NOT fragile                                    | 2",
        "fragile IS NULL                                | 34567@",
        "fragile = TRUE OR weight = 25                  | 12",
        "fragile = TRUE AND weight = 10                 | 1",
        "nothing = 1 OR weight = 10                     | 1",
        "nothing = 1 AND weight = 10                    | -",
        "NOT (nothing = 1 AND weight = 10)              | 2346",
        "weight = '10'                                  | -",
        "weight IN ('10')                               | -",
        "weight NOT IN ('10')                           | -",
        "NOT (weight IN ('10', '25'))                   | -",
        "fragile NOT IN ('true')                        | -",
        "weight NOT IN ('10') OR colour = 'red'         | 1",
        "colour = 10                                    | -",
        "colour = 'red' OR colour = 'blue' AND weight = 1 | 1",
        "JMSType = 'type1'                              | 135@",
        "JMSPriority = 3                                | @",
        "JMSPriority >= 4                               | 123456",
        "JMSDeliveryMode = 'NON_PERSISTENT'             | 5",
        "JMSDeliveryMode = 'PERSISTENT'                 | 12346@",
        "JMSCorrelationID = 'c2'                        | 2",
        "JMSCorrelationID IN ('c1', 'c3')               | 13",
        "JMSTimestamp > 0                               | 123456@",
        "JMSMessageID IS NOT NULL                       | 123456@",
        "JMSMessageID LIKE 'ID:%'                       | 123456@",
        "JMSTimestamp BETWEEN 1 AND 99999999999999      | 123456@",
        "colour is not null And weight Between 9 and 11 | 1",
        "TRUE                                           | 123456@",
        "1 = 1                                          | 123456@",
        "1 = 2                                          | -",
    })
    void selectorChooses(String selector, String expected) throws Exception {
        Session session = session();
        fill(session);
        // "-" is none; "@" is number 7, which comes last since its priority is lower.
        List<String> numbers = expected.replace("-", "").replace("@", "7")
                .chars().mapToObj(Character::toString).distinct().toList();
        MessageConsumer consumer = session.createConsumer(queue(session), selector);
        assertEquals(numbers, rest(consumer), selector);
        consumer.close();
        assertEquals(7 - numbers.size(), left(queue(session)).size());
    }

    @ParameterizedTest
    @ValueSource(strings = {"colour =", "colour = 'red", "colour == 'red'", "= 1", "(colour = 'a'",
        "colour LIKE 1", "colour IN ()", "colour BETWEEN 1", "a = 1 b = 2", "NOT", "1x = 2",
        "name LIKE 'a' ESCAPE 'ab'", "weight + = 3"})
    void malformedSelectorIsRefused(String selector) throws Exception {
        Session session = session();
        Queue queue = queue(session);
        assertThrows(InvalidSelectorException.class,
                () -> session.createConsumer(queue, selector));
        assertThrows(InvalidSelectorException.class, () ->
                session.createBrowser(queue, selector).getEnumeration());
    }

    @ParameterizedTest
    @Needs(Feature.HEADER_SELECTORS)
    @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
        "JMSReplyTo = 'answers'       | 1",
        "JMSReplyTo IS NULL           | 23",
        "JMSExpiration = 0            | 13",
        "JMSExpiration > JMSTimestamp | 2",
        "JMSDeliveryTime >= JMSTimestamp | 123",
        "JMSXGroupSeq = 7             | 3",
        "JMSXDeliveryCount = 1        | 123",
        "JMSRedelivered = FALSE       | 123",
        "NOT JMSRedelivered           | 123",
        "\"order-id\" = 5             | 2",
        "\"a.b\" LIKE 'x%'            | 3",
    })
    void selectorReadsHeadersAndQuotedNames(String selector, String expected) throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        TextMessage first = session.createTextMessage("1");
        first.setJMSReplyTo(session.createQueue("answers"));
        producer.send(first);
        TextMessage second = propertied(session, "2", "order-id", 5);
        producer.send(second, DeliveryMode.PERSISTENT, 4, 600_000);
        TextMessage third = propertied(session, "3", "a.b", "xy");
        third.setIntProperty("JMSXGroupSeq", 7);
        third.setStringProperty("JMSXGroupID", "g");
        producer.send(third);
        List<String> numbers = expected.chars().mapToObj(Character::toString).toList();
        assertEquals(numbers, rest(session.createConsumer(queue(session), selector)), selector);
    }

    /** The client checks the names of properties, unless it is told not to. */
    private TextMessage propertied(Session session, String text, String name, Object value)
            throws JMSException {
        JmsTextMessage message = (JmsTextMessage) session.createTextMessage(text);
        message.setValidatePropertyNames(false);
        message.setObjectProperty(name, value);
        return message;
    }

    /** A message that has failed is chosen by that, and not by those who want what is new. */
    @Test
    @Needs(Feature.HEADER_SELECTORS)
    void attemptsCanBeChosen() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        send(session, queue, "again");
        session.commit();
        MessageConsumer fresh = session.createConsumer(queue, "JMSXDeliveryCount = 1");
        assertEquals("again", text(fresh));
        session.rollback();
        assertNothing(fresh);
        fresh.close();
        String failed = "JMSRedelivered AND JMSXDeliveryCount = 2";
        MessageConsumer again = session.createConsumer(queue, failed);
        assertEquals("again", text(again));
        session.commit();
    }

    /** What the client's own check lets pass, and can never match. */
    @ParameterizedTest
    @Needs(Feature.HEADER_SELECTORS)
    @ValueSource(strings = {"JMSPriority = 'high'", "JMSDeliveryMode = 2", "JMSFoo = 1",
        "JMSDeliveryMode = 'persistent'", "JMSTimestamp LIKE '1%'"})
    void neverMatchingSelectorIsRefused(String selector) throws Exception {
        Session session = session();
        Queue queue = queue(session);
        JMSException refused =
                assertThrows(JMSException.class, () -> session.createConsumer(queue, selector));
        assertTrue(refused.getMessage().contains("selector"), refused.getMessage());
    }

    @Test
    @Needs(Feature.LOOSE_NOT)
    void notBindsLooserThanAComparison() throws Exception {
        selectorChooses("NOT colour = 'red'", "2356");
    }

    @Test
    void messageIdsCanBeChosen() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        TextMessage message = session.createTextMessage("wanted");
        producer.send(session.createTextMessage("other"));
        producer.send(message);
        String selector = "JMSMessageID = '" + message.getJMSMessageID() + "'";
        assertEquals(List.of("wanted"), rest(session.createConsumer(queue, selector)));
    }

    @Test
    void groupsCanBeChosen() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        for (int number = 1; number <= 4; number++) {
            TextMessage message = session.createTextMessage(Integer.toString(number));
            message.setStringProperty("JMSXGroupID", number % 2 == 0 ? "even" : "odd");
            producer.send(message);
        }
        MessageConsumer consumer = session.createConsumer(queue(session), "JMSXGroupID = 'even'");
        assertEquals(List.of("2", "4"), rest(consumer));
    }

    @Test
    void consumersWithSelectorsShareAQueue() throws Exception {
        Session session = session();
        Queue queue = queue(session);
        MessageConsumer red = session.createConsumer(queue, "colour = 'red'");
        MessageConsumer light = session.createConsumer(queue, "weight < 5");
        put(session, 1, "colour", "red", "weight", 9);
        put(session, 2, "colour", "blue", "weight", 3);
        put(session, 3, "colour", "blue", "weight", 9);
        put(session, 4, "colour", "red", "weight", 9);
        assertEquals(List.of("1", "4"), rest(red));
        assertEquals(List.of("2"), rest(light));
        assertEquals(List.of("3"), left(queue));
    }

    @Test
    void rolledBackMessagesAreSelectedAgain() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        fill(session);
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue, "weight > 7");
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        session.rollback();
        assertEquals(List.of("1", "2"), texts(consumer, 2));
        session.commit();
        assertNothing(consumer);
    }

    @Test
    void selectorLooksPastManyOthers() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        Queue queue = queue(session);
        MessageProducer producer = session.createProducer(queue);
        for (int number : IntStream.range(0, 5_000).toArray()) {
            TextMessage message = session.createTextMessage(Integer.toString(number));
            message.setIntProperty("number", number);
            producer.send(message);
        }
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue, "number >= 4998");
        assertEquals(List.of("4998", "4999"), rest(consumer));
        session.commit();
    }
}
