package dunlin.bench;

import java.util.Arrays;

/** Durations in nanoseconds, as many as come. */
final class Samples {
    private static final double NANOS_PER_MILLI = 1e6;

    private long[] nanos = new long[1024];
    private int count;

    void add(long duration) {
        if (count == nanos.length) {
            nanos = Arrays.copyOf(nanos, 2 * count);
        }
        nanos[count++] = duration;
    }

    void addAll(Samples others) {
        for (int at = 0; at < others.count; at++) {
            add(others.nanos[at]);
        }
    }

    int count() {
        return count;
    }

    /** The smallest that {@code part} of all do not exceed, in ms; 0 when there are none. */
    double millis(double part) {
        if (count == 0) {
            return 0;
        }
        Arrays.sort(nanos, 0, count);
        int rank = (int) Math.ceil(part * count) - 1;
        return nanos[Math.max(0, rank)] / NANOS_PER_MILLI;
    }
}
