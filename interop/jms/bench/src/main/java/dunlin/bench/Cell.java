package dunlin.bench;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;

/** One cell of the matrix: how messages are sent and then received on one connection. */
final class Cell {
    private final Connection connection;
    private final String queue;
    private final int deliveryMode;
    /** Messages of a transaction; 0: no transactions, AUTO_ACKNOWLEDGE. */
    private final int batch;
    private final int messages;
    private final byte[] body;

    /** Until the last {@code send} or {@code commit} returned: what an application waits for. */
    final Samples send = new Samples();
    /** Until producer and session are closed: the broker has answered for everything. */
    final Samples sendClosed = new Samples();
    /** Until the last message was received, and committed. */
    final Samples receive = new Samples();
    /** Until consumer and session are closed: the broker has the acknowledgements too. */
    final Samples receiveClosed = new Samples();

    Cell(Connection connection, String queue, boolean persistent, int batch, int messages,
            int bytes) {
        this.connection = connection;
        this.queue = queue;
        this.deliveryMode = persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT;
        this.batch = batch;
        this.messages = messages;
        this.body = new byte[bytes];
    }

    /** Sends all messages, then receives them; the queue is empty before and after. */
    void round() throws JMSException {
        sendAll();
        receiveAll();
    }

    private void sendAll() throws JMSException {
        Session session = session();
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(deliveryMode);
        long begun = System.nanoTime();
        for (int sent = 1; sent <= messages; sent++) {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(body);
            producer.send(message);
            commitAfter(sent, session);
        }
        send.add(System.nanoTime() - begun);
        producer.close();
        session.close();
        sendClosed.add(System.nanoTime() - begun);
    }

    /** The consumer is made within the time, or its prefetch would be done before. */
    private void receiveAll() throws JMSException {
        Session session = session();
        Queue source = session.createQueue(queue);
        long begun = System.nanoTime();
        MessageConsumer consumer = session.createConsumer(source);
        for (int received = 1; received <= messages; received++) {
            if (consumer.receive(Broker.ANSWER_MILLIS) == null) {
                throw new JMSException("message " + received + " did not come");
            }
            commitAfter(received, session);
        }
        receive.add(System.nanoTime() - begun);
        consumer.close();
        session.close();
        receiveClosed.add(System.nanoTime() - begun);
    }

    private Session session() throws JMSException {
        int mode = batch > 0 ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE;
        return connection.createSession(mode);
    }

    private void commitAfter(int done, Session session) throws JMSException {
        if (batch > 0 && (done % batch == 0 || done == messages)) {
            session.commit();
        }
    }
}
