package dunlin.bench;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * The matrix of the ActiveMQ document: messages sent and then received, transacted or not,
 * persistent or not. One line of JSON a cell; exit 1 when any failed.
 */
public final class Matrix {
    private static final String USAGE = """
            Matrix NAME=URL... [--cells commit-each,commit-1000,auto]
              [--modes persistent,non-persistent] [--messages 1000] [--bytes 1024] [--rounds 5]
              [--warm-up-seconds 3]   rounds before the counted ones: for so long, at least one""";
    private static final Set<String> KNOWN =
            Set.of("cells", "modes", "messages", "bytes", "rounds", "warm-up-seconds");

    private final Options options;
    private boolean failed;

    private Matrix(Options options) {
        this.options = options;
    }

    public static void main(String[] arguments) {
        Matrix matrix = new Matrix(Options.of(arguments, USAGE, KNOWN));
        matrix.run();
        System.exit(matrix.failed ? 1 : 0);
    }

    private void run() {
        for (Broker broker : options.brokers()) {
            for (String mode : options.list("modes", "persistent,non-persistent")) {
                for (String cell : options.list("cells", "commit-each,commit-1000,auto")) {
                    measure(broker, cell, persistent(mode));
                }
            }
        }
    }

    private void measure(Broker broker, String name, boolean persistent) {
        int messages = options.number("messages", 1000);
        int bytes = options.number("bytes", 1024);
        Line line = new Line("matrix", broker)
                .put("cell", name)
                .put("persistent", persistent)
                .put("messages", messages)
                .put("bytes", bytes);
        String queue = "bench." + UUID.randomUUID();
        try (Connection connection = broker.connect()) {
            int warmUps = warmUp(
                    new Cell(connection, queue, persistent, batch(name), messages, bytes));
            Cell cell = new Cell(connection, queue, persistent, batch(name), messages, bytes);
            int rounds = options.number("rounds", 5);
            for (int round = 0; round < rounds; round++) {
                cell.round();
            }
            line.put("rounds", rounds)
                    .put("warm_ups", warmUps)
                    .putSpread("send_ms", cell.send)
                    .putSpread("send_closed_ms", cell.sendClosed)
                    .putSpread("receive_ms", cell.receive)
                    .putSpread("receive_closed_ms", cell.receiveClosed);
        } catch (JMSException error) {
            failed = true;
            line.put("error", error.toString());
        }
        line.print();
    }

    /** The client is compiled while it runs, and so may the broker be. */
    private int warmUp(Cell cell) throws JMSException {
        long nanos = TimeUnit.SECONDS.toNanos(options.number("warm-up-seconds", 3));
        long begun = System.nanoTime();
        int rounds = 0;
        do {
            cell.round();
            rounds++;
        } while (System.nanoTime() - begun < nanos);
        return rounds;
    }

    private static boolean persistent(String mode) {
        return switch (mode) {
            case "persistent" -> true;
            case "non-persistent" -> false;
            default -> throw new IllegalArgumentException(mode + "? See the usage: --modes");
        };
    }

    private static int batch(String cell) {
        return switch (cell) {
            case "auto" -> 0;
            case "commit-each" -> 1;
            default -> Integer.parseInt(cell.replaceFirst("^commit-", ""));
        };
    }
}
