package dunlin.bench;

import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;
import java.util.stream.Collectors;

/** One result as one line of JSON on the standard output. */
final class Line {
    private final StringJoiner fields = new StringJoiner(",", "{", "}");

    Line(String bench, Broker broker) {
        put("bench", bench).put("broker", broker.name());
    }

    Line put(String name, String value) {
        String text = value.replaceAll("[\\\\\"\\p{Cntrl}]", " ");
        return field(name, '"' + text + '"');
    }

    Line put(String name, long value) {
        return field(name, Long.toString(value));
    }

    Line put(String name, boolean value) {
        return field(name, Boolean.toString(value));
    }

    Line put(String name, double value) {
        return field(name, number(value));
    }

    Line put(String name, List<Double> values) {
        return field(name, values.stream().map(Line::number)
                .collect(Collectors.joining(",", "[", "]")));
    }

    /** The median is the figure, the ends tell how far to trust it. */
    Line putSpread(String name, Samples samples) {
        return put(name, samples.millis(0.5))
                .put(name + "_min", samples.millis(0))
                .put(name + "_max", samples.millis(1));
    }

    void print() {
        System.out.println(fields);
        System.out.flush();
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, "%.3f", value);
    }

    private Line field(String name, String json) {
        fields.add('"' + name + "\":" + json);
        return this;
    }
}
