package dunlin.bench;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a benchmark was asked: {@code --name value} each, and {@code NAME=URL} for every broker. */
final class Options {
    private final Map<String, String> values = new HashMap<>();
    private final List<Broker> brokers = new ArrayList<>();

    /** Exits with the usage when an argument is none of {@code known}, or no broker is named. */
    static Options of(String[] arguments, String usage, Set<String> known) {
        Options options = new Options();
        try {
            options.read(arguments, known);
        } catch (IllegalArgumentException error) {
            System.err.println(error.getMessage() + "\nusage: " + usage);
            System.exit(2);
        }
        return options;
    }

    List<Broker> brokers() {
        return brokers;
    }

    int number(String name, int otherwise) {
        return Integer.parseInt(text(name, Integer.toString(otherwise)));
    }

    /** Words separated by commas. */
    List<String> list(String name, String otherwise) {
        return List.of(text(name, otherwise).split(","));
    }

    private String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    private void read(String[] arguments, Set<String> known) {
        for (int at = 0; at < arguments.length; at++) {
            String word = arguments[at];
            if (!word.startsWith("--")) {
                brokers.add(Broker.of(word));
            } else if (known.contains(word.substring(2)) && at + 1 < arguments.length) {
                values.put(word.substring(2), arguments[++at]);
            } else {
                throw new IllegalArgumentException(word + "? There are " + known);
            }
        }
        if (brokers.isEmpty()) {
            throw new IllegalArgumentException("which broker?");
        }
    }
}
