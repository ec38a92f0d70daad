package dunlin.crash;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Load for a broker that is killed again and again: {@code Load LEDGER SEED}. From standard input
 * it learns which broker runs ({@code broker EPOCH HOST:PORT COUNT}), and when to stop and take all
 * that is left ({@code finish}). It prints {@code enough EPOCH} once that broker has confirmed so
 * many units of work, and what went wrong.
 */
public final class Load {
    private final Ledger ledger;
    private final Lives lives = new Lives();
    private final Random random;
    private final List<Worker> workers = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private Broker broker;

    private Load(Path file, long seed) throws IOException {
        ledger = new Ledger(file);
        random = new Random(seed);
    }

    public static void main(String[] arguments) throws Exception {
        // A worker that ends would be missed by nobody, and the run would prove too little.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        Load load = new Load(Path.of(arguments[0]), Long.parseLong(arguments[1]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            load.obey(line.split(" "));
        }
    }

    Ledger ledger() {
        return ledger;
    }

    Lives lives() {
        return lives;
    }

    /** Random numbers of its own, which the seed repeats. */
    Random fork() {
        return new Random(random.nextLong());
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "broker" -> {
                Broker next = new Broker(Integer.parseInt(words[1]), words[2]);
                begin(next, Long.parseLong(words[3]));
            }
            case "finish" -> finish();
            default -> throw new IllegalArgumentException(String.join(" ", words));
        }
    }

    private void begin(Broker next, long count) throws JMSException {
        broker = next;
        lives.begin(next);
        boolean isFirst = threads.isEmpty();
        if (isFirst) {
            subscribe();
            sendHeld();
        }
        // Not before: none of these may lose its broker.
        ledger.after(count, () -> System.out.println("enough " + next.epoch()));
        if (isFirst) {
            workers.addAll(workers());
            workers.forEach(this::start);
        }
    }

    /** A subscription gets what is published after it was made. */
    private void subscribe() throws JMSException {
        for (Place place : List.of(Place.EAST, Place.WEST)) {
            try (Connection connection = place.connect(broker)) {
                place.consumer(connection.createSession()).close();
            }
        }
    }

    private void sendHeld() throws JMSException {
        try (Connection connection = broker.connect()) {
            Session session = connection.createSession();
            MessageProducer producer = session.createProducer(Target.HELD.in(session));
            for (int count = 0; count < Holding.COUNT; count++) {
                Ledger.Unit unit = ledger.unit();
                String name = Parcel.name(unit, 0, 1);
                unit.sends(name, Target.HELD, true);
                unit.commits();
                producer.send(Parcel.pack(session, name, 100));
                unit.done();
            }
        }
    }

    private List<Worker> workers() {
        return List.of(
                new Producing(this, Session.AUTO_ACKNOWLEDGE),
                new Producing(this, Session.AUTO_ACKNOWLEDGE),
                new Producing(this, Session.SESSION_TRANSACTED),
                new Producing(this, Session.SESSION_TRANSACTED),
                new Consuming.Transacted(this, Target.BILLS, Place.ORDERS),
                new Consuming.Transacted(this, Target.RECEIPTS, Place.ORDERS, Place.BILLS),
                new Consuming.Transacted(this, null, Place.BILLS, Place.RECEIPTS),
                new Consuming.Transacted(this, null, Place.EAST),
                new Consuming.Acknowledged(this, Session.AUTO_ACKNOWLEDGE, Place.ORDERS),
                new Consuming.Acknowledged(this, Session.CLIENT_ACKNOWLEDGE, Place.BILLS),
                new Consuming.Acknowledged(this, Session.CLIENT_ACKNOWLEDGE, Place.WEST),
                new Holding(this));
    }

    private void start(Worker worker) {
        Thread thread = new Thread(worker);
        threads.add(thread);
        thread.start();
    }

    private void finish() throws Exception {
        for (Worker worker : workers) {
            worker.awaitWork();
        }
        lives.stop();
        for (Thread thread : threads) {
            thread.join();
        }
        new Drain(ledger, broker).run();
        ledger.close();
    }
}
