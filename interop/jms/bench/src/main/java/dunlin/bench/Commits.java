package dunlin.bench;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Transacted persistent commits a second: sessions that each send one message and commit, again
 * and again, each to a queue of its own. One line of JSON a number of sessions.
 */
public final class Commits {
    private static final String USAGE = """
            Commits NAME=URL... [--sessions 1,2,10,20,100,200] [--seconds 5] [--bytes 1024]
              [--connections 0]       shared by the sessions in turn; 0: each has one of its own
              [--warm-up-seconds 3]   commits before those that count""";
    private static final Set<String> KNOWN =
            Set.of("sessions", "seconds", "bytes", "connections", "warm-up-seconds");

    private final Options options;
    private boolean failed;

    private Commits(Options options) {
        this.options = options;
    }

    public static void main(String[] arguments) {
        Commits commits = new Commits(Options.of(arguments, USAGE, KNOWN));
        commits.run();
        System.exit(commits.failed ? 1 : 0);
    }

    private void run() {
        for (Broker broker : options.brokers()) {
            for (String sessions : options.list("sessions", "1,2,10,20,100,200")) {
                measure(broker, Integer.parseInt(sessions));
            }
        }
    }

    private void measure(Broker broker, int sessions) {
        int asked = options.number("connections", 0);
        int connections = asked == 0 ? sessions : Math.min(asked, sessions);
        Line line = new Line("commits", broker)
                .put("sessions", sessions)
                .put("connections", connections)
                .put("bytes", options.number("bytes", 1024));
        List<Connection> open = new ArrayList<>();
        try {
            for (int count = 0; count < connections; count++) {
                open.add(broker.connect());
            }
            report(commitAll(open, sessions), line);
        } catch (JMSException | ExecutionException | InterruptedException error) {
            failed = true;
            line.put("error", error.toString());
        } finally {
            closeAll(open);
        }
        line.print();
    }

    private void report(List<Worker> workers, Line line) {
        Samples samples = new Samples();
        long all = 0;
        for (Worker worker : workers) {
            samples.addAll(worker.samples);
            all += worker.commits;
        }
        int seconds = options.number("seconds", 5);
        line.put("seconds", seconds)
                .put("commits", samples.count())
                .put("commits_with_warm_up", all)
                .put("per_second", (double) samples.count() / seconds)
                .put("p50_ms", samples.millis(0.5))
                .put("p99_ms", samples.millis(0.99));
    }

    private List<Worker> commitAll(List<Connection> open, int sessions)
            throws JMSException, ExecutionException, InterruptedException {
        List<Worker> workers = new ArrayList<>();
        for (int count = 0; count < sessions; count++) {
            workers.add(new Worker(open.get(count % open.size())));
        }
        long from = System.nanoTime()
                + TimeUnit.SECONDS.toNanos(options.number("warm-up-seconds", 3));
        long until = from + TimeUnit.SECONDS.toNanos(options.number("seconds", 5));
        ExecutorService threads = Executors.newFixedThreadPool(sessions);
        try {
            List<Future<Void>> ends = new ArrayList<>();
            for (Worker worker : workers) {
                worker.from = from;
                worker.until = until;
                ends.add(threads.submit(worker));
            }
            for (Future<Void> end : ends) {
                end.get();
            }
        } finally {
            threads.shutdownNow();
        }
        return workers;
    }

    private static void closeAll(List<Connection> open) {
        for (Connection connection : open) {
            try {
                connection.close();
            } catch (JMSException error) {
                System.err.println("close: " + error);
            }
        }
    }

    /** One session; a commit counts when it begins and ends within the time. */
    private final class Worker implements Callable<Void> {
        private final Session session;
        private final MessageProducer producer;
        private final byte[] body = new byte[options.number("bytes", 1024)];
        private final Samples samples = new Samples();
        private long commits;
        private long from;
        private long until;

        Worker(Connection connection) throws JMSException {
            session = connection.createSession(Session.SESSION_TRANSACTED);
            producer = session.createProducer(session.createQueue("bench." + UUID.randomUUID()));
        }

        @Override
        public Void call() throws JMSException {
            long begun = System.nanoTime();
            while (begun < until) {
                BytesMessage message = session.createBytesMessage();
                message.writeBytes(body);
                producer.send(message);
                session.commit();
                long now = System.nanoTime();
                commits++;
                if (begun >= from && now <= until) {
                    samples.add(now - begun);
                }
                begun = now;
            }
            return null;
        }
    }
}
