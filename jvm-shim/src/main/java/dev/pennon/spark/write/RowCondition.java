package dev.pennon.spark.write;

import dev.pennon.spark.expressions.ConnectorPredicates;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.replies.TableHandle;
import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** Which rows a statement deletes or overwrites, as texts for the worker. */
public final class RowCondition {
  private RowCondition() {}

  /**
   * Writes predicates that all have to hold.
   *
   * @param action what is done to the rows, as a sentence has it: {@code delete}
   * @throws WorkerFailure when a predicate has a part that cannot be written
   */
  public static String[] texts(TableHandle table, String action, Predicate... predicates) {
    return Arrays.stream(predicates)
        .map(
            predicate ->
                ConnectorPredicates.texts(table.schema(), predicate).stream()
                    .findFirst()
                    .orElseThrow(() -> notWritable(table, action, predicate)))
        .toArray(String[]::new);
  }

  private static WorkerFailure notWritable(TableHandle table, String action, Predicate predicate) {
    return WorkerFailure.of(
        "CONDITION_NOT_SUPPORTED",
        "table", table.name(),
        "condition", predicate.toString(),
        "action", action);
  }
}
