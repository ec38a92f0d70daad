package dunlin.interop;

import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.activemq.broker.BrokerService;

/**
 * ActiveMQ Classic in the process of its client: {@code Within FOLDER POLICY CLASS ARGUMENT...} starts
 * it and then the class, which finds it at {@code vm://within?create=false}.
 */
public final class Within {
    private Within() {}

    public static void main(String[] arguments) throws Exception {
        BrokerService broker = Classic.broker(arguments[0], Policy.of(arguments[1]));
        broker.setBrokerName("within");
        broker.start();
        broker.waitUntilStarted();
        Object rest = Arrays.copyOfRange(arguments, 3, arguments.length);
        try {
            Class.forName(arguments[2]).getMethod("main", String[].class).invoke(null, rest);
        } catch (InvocationTargetException error) {
            throw new IllegalStateException(error.getCause());
        }
    }
}
