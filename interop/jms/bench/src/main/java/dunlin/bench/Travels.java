package dunlin.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** How long each message travelled, in the order in which they came. One thread adds. */
final class Travels {
    private static final double NANOS_PER_MILLI = 1e6;
    private static final int POINTS_MAX = 100;

    private final int group;
    private long[] nanos = new long[1024];
    private volatile int count;

    Travels(int group) {
        this.group = group;
    }

    void add(long travelled) {
        if (count == nanos.length) {
            nanos = Arrays.copyOf(nanos, 2 * count);
        }
        nanos[count] = travelled;
        // Only one thread adds; the others see what it wrote before.
        count = count + 1;
    }

    int count() {
        return count;
    }

    /** Messages of a point: as many whole groups as keep the points few. */
    int pointMessages(int until) {
        int groups = until / group;
        return group * Math.max(1, (groups + POINTS_MAX - 1) / POINTS_MAX);
    }

    /** Mean travel times in ms, of one point after the other of the first {@code until}. */
    List<Double> points(int until) {
        int size = pointMessages(until);
        List<Double> points = new ArrayList<>();
        for (int from = 0; from + size <= until; from += size) {
            points.add(Arrays.stream(nanos, from, from + size).average().orElse(0)
                    / NANOS_PER_MILLI);
        }
        return points;
    }
}
