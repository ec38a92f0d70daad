package dunlin.bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/** Processor time that this process and the broker's have had, in nanoseconds. */
record Processors(long client, long broker) {
    /** Linux counts in hundredths of a second there, whatever the kernel's own clock. */
    private static final long TICK_NANOS = 10_000_000;

    /** A broker without a process of its own, 0, has none. */
    static Processors now(int brokerPid) {
        var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return new Processors(system.getProcessCpuTime(), broker(brokerPid));
    }

    Processors since(Processors earlier) {
        return new Processors(client - earlier.client, broker - earlier.broker);
    }

    /** The fields 14 and 15, of the user and of the system; the name in field 2 may hold anything. */
    private static long broker(int pid) {
        if (pid == 0) {
            return 0;
        }
        try {
            String stat = Files.readString(Path.of("/proc", Integer.toString(pid), "stat"));
            String[] fields = stat.substring(stat.lastIndexOf(") ") + 2).split(" ");
            return TICK_NANOS * (Long.parseLong(fields[11]) + Long.parseLong(fields[12]));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
