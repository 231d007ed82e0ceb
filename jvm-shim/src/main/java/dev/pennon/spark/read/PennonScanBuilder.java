package dev.pennon.spark.read;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.replies.TableHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** Collects what Spark pushes down and has the worker plan the scan, once. */
public final class PennonScanBuilder
    implements SupportsPushDownCatalystFilters, SupportsPushDownRequiredColumns {
  private final TableHandle table;
  private final boolean isOfRowChange;
  private final Map<String, String> options;
  private final List<String> sent = new ArrayList<>();
  /** Which of what was sent Spark does not evaluate again. */
  private final List<Integer> fullyPushed = new ArrayList<>();
  /** What Spark evaluates again, with the text of each that has one. */
  private final List<Map.Entry<Expression, Optional<String>>> residual = new ArrayList<>();
  private StructType schema;
  private PennonScan scan;

  /** The scan of a query or a stream, with the options of its reader. */
  public PennonScanBuilder(TableHandle table, Map<String, String> options) {
    this(table, options, false);
  }

  private PennonScanBuilder(TableHandle table, Map<String, String> options, boolean isOfRowChange) {
    this.table = table;
    this.options = options;
    this.isOfRowChange = isOfRowChange;
    this.schema = table.schema();
  }

  /** The scan of a statement that changes the rows which it gives. */
  public static PennonScanBuilder ofRowChange(TableHandle table) {
    return new PennonScanBuilder(table, Map.of(), true);
  }

  /**
   * Sends every condition that has a text. Spark is spared only the tests of columns for NULL, which
   * the worker makes exactly as Spark does, or fails: a filter that is left in the plan is how Spark
   * knows that this side of a join is selective, and prunes the other side's partitions by it while
   * running.
   */
  @Override
  public Seq<Expression> pushFilters(Seq<Expression> filters) {
    Set<String> names = Set.of(table.schema().fieldNames());
    List<Expression> left = new ArrayList<>();
    for (Expression filter : items(filters)) {
      String text = ExpressionText.ofTable(filter, names);
      if (text != null && isNullTest(filter, names)) {
        fullyPushed.add(sent.size());
      } else {
        left.add(filter);
        residual.add(Map.entry(filter, Optional.ofNullable(text)));
      }
      if (text != null) {
        sent.add(text);
      }
    }
    return sequence(left);
  }

  private static boolean isNullTest(Expression filter, Set<String> names) {
    if (!(filter instanceof IsNull || filter instanceof IsNotNull)) {
      return false;
    }
    Attribute tested = Columns.of(filter.children().head());
    return tested != null && names.contains(tested.name());
  }

  /** None in Spark's own form: the scan's description has what was sent. */
  @Override
  public Predicate[] pushedFilters() {
    return new Predicate[0];
  }

  @Override
  public void pruneColumns(StructType requiredSchema) {
    schema = requiredSchema;
  }

  /** The predicates of the scan that was built; nothing where Spark had no use for one. */
  public Optional<String[]> builtWith() {
    return scan == null ? Optional.empty() : Optional.of(sent.toArray(String[]::new));
  }

  @Override
  public Scan build() {
    if (scan == null) {
      ScanPlan plan = ScanPlan.request(table, sent, fullyPushed, schema, options, isOfRowChange);
      // What a statement has read is told by its conditions, not by the partitions that are there.
      Optional<String> left =
          isOfRowChange ? Optional.empty() : PartitionConditions.of(plan, undecided(plan));
      if (left.isPresent()) {
        List<String> more = new ArrayList<>(sent);
        more.add(left.get());
        plan = ScanPlan.request(table, more, fullyPushed, schema, options, false);
      }
      scan = PennonScan.of(plan, options);
    }
    return scan;
  }

  private List<Expression> undecided(ScanPlan plan) {
    return residual.stream()
        .filter(condition -> condition.getValue().filter(plan::isEvaluated).isEmpty())
        .map(Map.Entry::getKey)
        .toList();
  }
}
