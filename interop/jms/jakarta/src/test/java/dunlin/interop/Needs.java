package dunlin.interop;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A scenario that asks for more than the specification of JMS does. A broker that lacks it says so
 * with {@code -Dbroker.lacks=NAME,NAME}, and the scenario is counted as skipped.
 */
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(Lacking.class)
@interface Needs {
    /** What it asks for. */
    Feature[] value();
}
