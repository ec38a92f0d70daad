package dunlin.crash;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What was tried and what was confirmed, in the order in which it happened: a line before each
 * attempt and a line after each answer. The judge is {@code xtask/src/crash/jms/judge.rs}.
 *
 * <pre>
 * send UNIT MESSAGE PLACE,PLACE persistent   about to be sent in this unit
 * got UNIT EPOCH MESSAGE PLACE               received in this unit, from this life of the broker
 * commit UNIT                                about to be asked for
 * done UNIT                                  confirmed
 * broken EPOCH PLACE what                    received, and not as it was sent
 * drained                                    nothing is left anywhere; the last line
 * </pre>
 */
final class Ledger implements AutoCloseable {
    private final BufferedWriter out;
    private final AtomicLong units = new AtomicLong();
    private final AtomicLong backlog = new AtomicLong();
    private final AtomicLong awaited = new AtomicLong();
    private volatile Runnable reached = () -> {};

    Ledger(Path file) throws IOException {
        out = Files.newBufferedWriter(file);
    }

    /** What happens as a whole or not at all. */
    Unit unit() {
        return new Unit(units.incrementAndGet());
    }

    /** Messages that wait in queues and subscriptions, but for those whose fate is open. */
    long backlog() {
        return backlog.get();
    }

    /** Says so once so many more units are confirmed. */
    void after(long units, Runnable reached) {
        this.reached = reached;
        awaited.set(units);
    }

    void broken(int epoch, Place place, String what) {
        write("broken " + epoch + " " + place.label() + " " + what);
    }

    void drained() {
        write("drained");
    }

    @Override
    public void close() throws IOException {
        out.close();
    }

    private synchronized void write(String line) {
        try {
            out.write(line);
            out.newLine();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A transaction; or a send or an acknowledgement without one. */
    final class Unit {
        private final long number;
        private long grows;

        private Unit(long number) {
            this.number = number;
        }

        long number() {
            return number;
        }

        void sends(String message, Target target, boolean persistent) {
            String kind = persistent ? "persistent" : "volatile";
            write("send " + number + " " + message + " " + target.places() + " " + kind);
            grows += target.copies();
        }

        void got(int epoch, String message, Place place) {
            write("got " + number + " " + epoch + " " + message + " " + place.label());
            grows--;
        }

        void commits() {
            write("commit " + number);
        }

        void done() {
            write("done " + number);
            backlog.addAndGet(grows);
            if (awaited.decrementAndGet() == 0) {
                reached.run();
            }
        }
    }
}
