package dunlin.bigdata;

import com.bigdata.journal.AbstractMROWTestCase;
import com.bigdata.journal.BufferMode;
import com.bigdata.journal.ForceEnum;
import com.bigdata.journal.Journal;
import com.bigdata.journal.Options;
import com.bigdata.journal.StressTestConcurrentTx;
import com.bigdata.testutil.ExperimentDriver.Result;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * bigdata's own tests, each on a new Journal: {@code Stress FOLDER STORE}, where STORE is {@code none}
 * (in memory), {@code never} (a file that is not forced) or {@code always} (forced at each commit).
 * Each is asked by a line of the standard input, {@code transactions|reading CLIENTS SECONDS}, and
 * answered by a line of JSON.
 */
public final class Stress {
    /** More than can be done in the time. */
    private static final int TRANSACTIONS_EACH_SECOND = 20_000;
    private static final int TRIALS_EACH_SECOND = 20_000;
    private static final int KEY_BYTES = 3;
    private static final int OPERATIONS = 100;
    /** In percent, as the test's code compares it today. */
    private static final double ABORT_RATE = 10;
    private static final int RECORDS = 10_000;
    private static final int RECORD_BYTES = 1024;
    private static final int READS = 100;
    private static final Pattern READINGS = Pattern.compile(
            "nok=(\\d+), ncancelled=\\d+, nerrors=(\\d+) in (\\d+)ms .*nwritten=(\\d+)");

    private Stress() {}

    public static void main(String[] arguments) throws IOException {
        var asked = new BufferedReader(new InputStreamReader(System.in));
        int run = 0;
        for (String question = asked.readLine(); question != null; question = asked.readLine()) {
            File file = new File(arguments[0], "run" + run++ + ".jnl");
            try {
                System.out.println(answer(question.split(" "), file, arguments[1]));
            } catch (Exception error) {
                String why = error.toString().replaceAll("[\\\\\"\\p{Cntrl}]", " ");
                System.out.println("{\"error\":\"" + why + "\"}");
            }
        }
        // The tests leave threads behind.
        System.exit(0);
    }

    private static String answer(String[] words, File file, String store) throws Exception {
        int clients = Integer.parseInt(words[1]);
        int seconds = Integer.parseInt(words[2]);
        Journal journal = new Journal(properties(file, store));
        try {
            return words[0].equals("reading")
                    ? reading(journal, clients, seconds)
                    : transactions(journal, clients, seconds);
        } finally {
            journal.destroy();
        }
    }

    private static Properties properties(File file, String store) {
        Properties properties = new Properties();
        if (store.equals("none")) {
            properties.setProperty(Options.BUFFER_MODE, BufferMode.Transient.toString());
            return properties;
        }
        ForceEnum force = store.equals("always") ? ForceEnum.Force : ForceEnum.No;
        properties.setProperty(Options.BUFFER_MODE, BufferMode.DiskWORM.toString());
        properties.setProperty(Options.FILE, file.toString());
        properties.setProperty(Options.FORCE_ON_COMMIT, force.toString());
        return properties;
    }

    private static String transactions(Journal journal, int clients, int seconds)
            throws InterruptedException {
        Result result = StressTestConcurrentTx.doConcurrentClientTest(journal, seconds, clients,
                seconds * TRANSACTIONS_EACH_SECOND, KEY_BYTES, OPERATIONS, ABORT_RATE);
        return "{\"committed\":" + result.get("ncommitted")
                + ",\"aborted\":" + result.get("naborted")
                + ",\"failed\":" + result.get("nfailed")
                + ",\"nanos\":" + result.get("elapsed(ms)") + "000000}";
    }

    /** Its figures are only printed, on the standard error. */
    private static String reading(Journal journal, int clients, int seconds) throws Exception {
        PrintStream before = System.err;
        var said = new ByteArrayOutputStream();
        System.setErr(new PrintStream(said, true, StandardCharsets.UTF_8));
        try {
            AbstractMROWTestCase.doMROWTest(journal.getBufferStrategy(), RECORDS, 1, seconds,
                    clients, seconds * TRIALS_EACH_SECOND, RECORD_BYTES, READS,
                    new AtomicInteger(), false);
        } finally {
            System.setErr(before);
        }
        Matcher found = READINGS.matcher(said.toString(StandardCharsets.UTF_8));
        if (!found.find()) {
            throw new IllegalStateException("no figures in " + said);
        }
        long trials = Long.parseLong(found.group(1));
        return "{\"trials\":" + trials + ",\"reads\":" + trials * READS
                + ",\"errors\":" + found.group(2) + ",\"written\":" + found.group(4)
                + ",\"nanos\":" + found.group(3) + "000000}";
    }
}
