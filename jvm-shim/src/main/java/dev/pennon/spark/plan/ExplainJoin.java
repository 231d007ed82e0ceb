package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.catalog.JoinSettings;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;

/**
 * {@code CALL catalog.system.explain_join('SELECT …')}: what each join, aggregate and window of a
 * query finds of partitionings, and why it shuffles where it does.
 */
final class ExplainJoin {
  static final List<String> COLUMNS =
      List.of("operator", "left", "right", "common", "reason", "remedy");

  private ExplainJoin() {}

  static Stream<Stream<String>> explain(Supplier<SparkPlan> planning) {
    // The optimizer may come by a plan twice; it then finds the same again.
    Set<JsonNode> verdicts = new LinkedHashSet<>();
    long count = shuffles(DerivedKeyRule.listening(verdicts::add, planning));
    Map<String, String> opposed = count == 0 ? Map.of() : JoinSettings.opposed();
    String settings =
        opposed.entrySet().stream()
            .map(setting -> "the setting " + setting.getKey() + " is " + setting.getValue())
            .collect(Collectors.joining(", "));
    String remedy = opposed.isEmpty() ? "" : "unset " + String.join(", ", opposed.keySet());
    String shuffles = count + " shuffle(s) in the whole plan";
    return Stream.concat(
        verdicts.stream()
            .map(verdict -> COLUMNS.stream().map(name -> verdict.path(name).asText())),
        Stream.of(Stream.of("query", "", "", shuffles, settings, remedy)));
  }

  private static long shuffles(SparkPlan plan) {
    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      return shuffles(adaptive.initialPlan());
    }
    long below = items(plan.children()).stream().mapToLong(ExplainJoin::shuffles).sum();
    return below + (plan instanceof ShuffleExchangeLike ? 1 : 0);
  }
}
