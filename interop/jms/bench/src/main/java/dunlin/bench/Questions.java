package dunlin.bench;

import jakarta.jms.JMSException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** Lines of the standard input, each of which is answered by a line of JSON. */
final class Questions {
    /** Puts what it finds into the line. */
    interface Answering {
        void answer(String[] words, Line line) throws JMSException, InterruptedException;
    }

    private Questions() {}

    /** Until there are no more; then the process ends. */
    static void answer(String bench, Broker broker, Answering answering) throws IOException {
        var asked = new BufferedReader(new InputStreamReader(System.in));
        for (String question = asked.readLine(); question != null; question = asked.readLine()) {
            String[] words = question.split(" ");
            Line line = new Line(bench, broker).put("phase", words[0]);
            try {
                answering.answer(words, line);
            } catch (JMSException | InterruptedException | RuntimeException error) {
                line.put("error", error.toString());
            }
            line.print();
        }
        // Clients leave threads behind.
        System.exit(0);
    }
}
