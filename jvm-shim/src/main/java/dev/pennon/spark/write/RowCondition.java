package dev.pennon.spark.write;

import dev.pennon.spark.catalog.TableHandle;
import dev.pennon.spark.read.PredicateText;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
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
    PredicateText text = PredicateText.ofSession(table.schema());
    return Arrays.stream(predicates)
        .map(each -> text.write(each).orElseThrow(() -> notWritable(table, action, each)))
        .toArray(String[]::new);
  }

  /** Writes predicates that all have to hold; nothing when one of them cannot be written. */
  public static Optional<String[]> find(TableHandle table, Predicate... predicates) {
    PredicateText text = PredicateText.ofSession(table.schema());
    String[] written =
        Arrays.stream(predicates)
            .map(text::write)
            .flatMap(Optional::stream)
            .toArray(String[]::new);
    return written.length == predicates.length ? Optional.of(written) : Optional.empty();
  }

  private static WorkerFailure notWritable(TableHandle table, String action, Predicate predicate) {
    return WorkerFailure.of(
        "CONDITION_NOT_SUPPORTED",
        "0A000",
        Map.of("table", table.name(), "condition", predicate.toString()),
        "Cannot %s the rows of %s where %s: it has a part that only Spark evaluates. Compare "
            + "columns with literals instead.",
        action, table.name(), predicate);
  }
}
