package dunlin.interop;

import static org.junit.platform.commons.support.AnnotationSupport.findAnnotation;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Skips what the broker is said to lack. */
final class Lacking implements ExecutionCondition {
    private static final Set<Feature> LACKS = lacks();

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        return context.getElement()
                .flatMap(element -> findAnnotation(element, Needs.class))
                .flatMap(needs -> List.of(needs.value()).stream().filter(LACKS::contains).findAny())
                .map(missing -> ConditionEvaluationResult.disabled("the broker lacks " + missing))
                .orElse(ConditionEvaluationResult.enabled("the broker lacks nothing of it"));
    }

    private static Set<Feature> lacks() {
        Set<Feature> lacks = EnumSet.noneOf(Feature.class);
        for (String name : System.getProperty("broker.lacks", "").split(",")) {
            if (!name.isBlank()) {
                lacks.add(Feature.valueOf(name.strip()));
            }
        }
        return lacks;
    }
}
