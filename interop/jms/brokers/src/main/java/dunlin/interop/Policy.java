package dunlin.interop;

import java.time.Duration;

/**
 * When a broker flushes what it was told to keep, in Dunlin's words: {@code none} keeps nothing,
 * {@code always} flushes before it confirms, a period such as {@code 25ms} at least that often.
 */
record Policy(boolean stored, Duration period) {
    /** Before it confirms. */
    static final Policy ALWAYS = new Policy(true, Duration.ZERO);

    static Policy of(String word) {
        if (word.equals("none")) {
            return new Policy(false, Duration.ZERO);
        }
        if (word.equals("always")) {
            return ALWAYS;
        }
        if (word.endsWith("ms")) {
            long millis = Long.parseLong(word.substring(0, word.length() - 2));
            return new Policy(true, Duration.ofMillis(millis));
        }
        throw new IllegalArgumentException(word + "? none, always or a period such as 25ms");
    }

    /** The disk has it before a confirmation leaves. */
    boolean always() {
        return stored && period.isZero();
    }
}
