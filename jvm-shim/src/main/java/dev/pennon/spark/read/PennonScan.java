package dev.pennon.spark.read;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.ScanRelations;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.tasks.KeyedLeaf;
import dev.pennon.spark.tasks.Metric;
import dev.pennon.spark.tasks.PennonSplit;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportOrdering;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.connector.SupportsMetadata;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.PartialFunction;

/**
 * A planned scan as Spark sees it.
 *
 * <p>The plan never changes. Runtime filters, which Spark hands to the scan object itself, may only
 * drop splits: the reported grouping stays as it was.
 */
public final class PennonScan
    implements SupportsReportPartitioning,
        SupportsReportOrdering,
        SupportsReportStatistics,
        SupportsRuntimeV2Filtering,
        SupportsMetadata {
  /** Name of the column that {@link #withDerivedKeys} adds. */
  public static final String DERIVED_KEY = "_derived_key";

  /** Who wants to hear of the scans that this thread plans. */
  private static final ThreadLocal<Consumer<PennonScan>> LISTENER = new ThreadLocal<>();

  private final ScanPlan plan;
  private final String derivation;
  private final boolean isOrdered;

  /** Those of the reader, which a stream is made with. */
  private final Map<String, String> options;

  /** What runtime filters have left; null before there was one. */
  private volatile List<PennonSplit> filtered;

  private volatile RuntimeFilters runtimeFilters = RuntimeFilters.NONE;

  /** What is known of rows and columns; null before the optimizer asked for it. */
  private volatile ScanStatistics ofColumns;

  /** A scan as it is planned first. */
  static PennonScan of(ScanPlan plan, Map<String, String> options) {
    PennonScan scan = new PennonScan(plan, null, !plan.reply().ordering().isEmpty(), options);
    Consumer<PennonScan> listener = LISTENER.get();
    if (listener != null) {
      listener.accept(scan);
    }
    return scan;
  }

  /** The scan that an operator is; null where it is none of Pennon's tables. */
  public static PennonScan of(LogicalPlan plan) {
    return plan instanceof DataSourceV2ScanRelation relation
            && relation.scan() instanceof PennonScan scan
        ? scan
        : null;
  }

  /** The scans of a plan that are of Pennon's tables. */
  public static Stream<PennonScan> in(LogicalPlan plan) {
    return items(plan.collectLeaves()).stream().map(PennonScan::of).filter(Objects::nonNull);
  }

  /** Runs something that plans queries, and hears of its scans. */
  public static <T> T listening(Consumer<PennonScan> listener, Supplier<T> planning) {
    LISTENER.set(listener);
    try {
      return planning.get();
    } finally {
      LISTENER.remove();
    }
  }

  private PennonScan(
      ScanPlan plan, String derivation, boolean isOrdered, Map<String, String> options) {
    this.plan = plan;
    this.options = options;
    this.derivation = derivation;
    this.isOrdered = isOrdered;
  }

  /**
   * This scan with a key as its last column, never NULL and constant over each split.
   *
   * @param keys what is read under each key
   * @param derivation what the key stands for and how many groups it makes, as EXPLAIN shows it
   * @param keepsOrder whether each split's rows stay in the order of this scan, if it has one
   */
  public PennonScan withDerivedKeys(List<KeyedLeaf> keys, String derivation, boolean keepsOrder) {
    return new PennonScan(plan.withDerivedKeys(keys), derivation, isOrdered && keepsOrder, options);
  }

  /** This scan for a query that groups nothing by partitions: fewer and evener splits, no keys. */
  public PennonScan packed() {
    return new PennonScan(plan.packed(), null, false, options);
  }

  /** This scan with fewer columns, the same ones of its partitioning and order among them. */
  public PennonScan narrowed(StructType narrower) {
    return new PennonScan(plan.narrowed(narrower), derivation, isOrdered, options);
  }

  /**
   * A plan to be executed with the filters of that execution alone. Each step of a recursion executes
   * one plan anew, whose scans the step before has filtered.
   */
  public static LogicalPlan unfiltered(LogicalPlan query) {
    return query.transformWithSubqueries(PartialFunction.fromFunction(PennonScan::anew));
  }

  private static LogicalPlan anew(LogicalPlan node) {
    PennonScan scan = of(node);
    if (scan == null || scan.filtered == null) {
      return node;
    }
    var relation = (DataSourceV2ScanRelation) node;
    scan = new PennonScan(scan.plan, scan.derivation, scan.isOrdered, scan.options);
    return ScanRelations.narrowed(relation, scan, relation.output());
  }

  /** The worker's name of this scan's plan. */
  public String token() {
    return plan.reply().plan();
  }

  /**
   * Whether all rows of this scan satisfy a condition.
   *
   * @param text the condition as it was pushed
   * @param byValues whether only what partition values decide counts, not the leaves' filters
   */
  public boolean satisfies(String text, boolean byValues) {
    return byValues ? plan.isDecided(text) : plan.isEvaluated(text);
  }

  /** The columns of the table that it reads, without a derived key. */
  public StructType columns() {
    return plan.schema();
  }

  /** The names of all columns of the table, but those of its metadata columns. */
  public Set<String> tableColumns() {
    return Set.of(plan.table().schema().fieldNames());
  }

  public boolean isPacked() {
    return plan.isPacked();
  }

  public boolean isDerived() {
    return derivation != null;
  }

  /** Whether each split's rows come in the order that the plan of the table's scan reports. */
  public boolean isOrdered() {
    return isOrdered;
  }

  /** What the worker knows this scan's partitions by: its catalog and the token of its plan. */
  public ObjectNode outline() {
    requireBatchOptions();
    ObjectNode outline = Messages.object().put("plan", plan.reply().plan());
    outline.put("table", plan.table().name());
    outline.set("catalog", plan.table().catalog().json());
    return outline;
  }

  @Override
  public StructType readSchema() {
    return isDerived() ? plan.schema().add(DERIVED_KEY, DataTypes.LongType, false) : plan.schema();
  }

  /** Whoever states an option of a stream must not get all rows of the table. */
  private void requireBatchOptions() {
    String option = plan.reply().streamOption();
    if (option != null) {
      String table = plan.table().name();
      throw WorkerFailure.of("READ_OPTION_OF_STREAMS", "table", table, "option", option).raise();
    }
  }

  @Override
  public Batch toBatch() {
    requireBatchOptions();
    return new PennonBatch(plan, filtered, isDerived(), isOrdered, () -> runtimeFilters.rowKeys());
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    return new PennonStream(plan, options);
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public Partitioning outputPartitioning() {
    if (isDerived()) {
      Expression[] key = {Expressions.identity(DERIVED_KEY)};
      return new KeyGroupedPartitioning(key, plan.splits().size());
    }
    if (isPacked() || plan.reply().keys().isEmpty()) {
      return new UnknownPartitioning(plan.splits().size());
    }
    return new KeyGroupedPartitioning(
        plan.reply().keys().toArray(Expression[]::new), plan.splits().size());
  }

  /** With a derived key Spark is told by the rule that adds it: the key is no column of the table. */
  @Override
  public SortOrder[] outputOrdering() {
    return isOrdered && !isDerived()
        ? plan.reply().ordering().toArray(SortOrder[]::new)
        : new SortOrder[0];
  }

  @Override
  public Statistics estimateStatistics() {
    if (!ScanStatistics.areColumnsAsked()) {
      OptionalLong rows = plan.reply().rows();
      return new ScanStatistics(rows, bytesInMemory(rows));
    }
    if (ofColumns == null) {
      ofColumns = ScanStatistics.ofColumns(plan);
    }
    OptionalLong rows = ofColumns.numRows();
    return new ScanStatistics(rows, bytesInMemory(rows), ofColumns.columnStats());
  }

  /** Bytes of the pruned columns: by rows where they are known, as Spark counts its own. */
  private OptionalLong bytesInMemory(OptionalLong rows) {
    if (rows.isEmpty()) {
      return plan.reply().bytes();
    }
    long rowBytes = Math.max(1, readSchema().defaultSize());
    double bytes = (double) rows.getAsLong() * rowBytes;
    return OptionalLong.of((long) Math.min(bytes, Long.MAX_VALUE / 2.0));
  }

  @Override
  public NamedReference[] filterAttributes() {
    return plan.filterAttributes();
  }

  /** Spark calls it once for each execution, with all filters of that one. */
  @Override
  public void filter(Predicate[] predicates) {
    Set<NamedReference> ofPartitions = Set.of(filterAttributes());
    RuntimeFilters all = RuntimeFilters.of(plan.table().schema(), ofPartitions, predicates);
    if (!all.equals(runtimeFilters)) {
      runtimeFilters = all;
      boolean isEmpty = plan.splits().list().stream().allMatch(PennonSplit::isEmpty);
      filtered = isEmpty ? filtered : plan.splitsUnder(all);
    }
  }

  /** The worker's lines about the plan as one, for they stand within a tree of operators. */
  @Override
  public String description() {
    List<String> parts = new ArrayList<>();
    plan.reply().description().lines().map(String::strip).forEach(parts::add);
    parts.add("grouping: " + grouping());
    if (isOrdered) {
      parts.add(
          "sorted by: "
              + plan.reply().ordering().stream().map(SortOrder::describe).collect(Collectors.joining(", ")));
    }
    List<PennonSplit> left = filtered;
    Optional<List<PennonSplit>> planned = plan.splits().ifMade();
    if (left != null && planned.isPresent()) {
      long kept = partitions(left);
      long all = partitions(planned.get());
      if (kept < all) {
        parts.add("runtime filters kept: " + kept + " of " + all + " partitions");
      }
    }
    return String.join("; ", parts);
  }

  /** The lines of EXPLAIN FORMATTED: a name and a text each. */
  @Override
  public scala.collection.immutable.Map<String, String> getMetaData() {
    return DetailLines.of(
        Stream.concat(plan.reply().details().lines(), Stream.of("grouping: " + grouping())));
  }

  /** Partitions of which something is read; parts of one are counted once. */
  private static long partitions(List<PennonSplit> splits) {
    return splits.stream().flatMap(split -> split.objectIds().stream()).distinct().count();
  }

  private String grouping() {
    if (isDerived()) {
      return derivation;
    }
    return isPacked() || plan.reply().keys().isEmpty()
        ? "none"
        : plan.reply().keys().stream().map(Transform::describe).collect(Collectors.joining(", "))
            + inGroups();
  }

  /** Known once Spark has seen the splits: a description asks nobody, for logs print it too. */
  private String inGroups() {
    return plan.splits()
        .ifMade()
        .map(made -> made.stream().map(PennonSplit::partitionKey).distinct().count())
        .map(groups -> " (" + groups + " groups)")
        .orElse("");
  }

  public Metric.Planning planning() {
    return plan.planning();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return Metric.shown(Metric.OF_SCAN);
  }

  /** Asked for when the query runs: what runtime filters dropped counts as skipped. */
  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    List<PennonSplit> left = filtered;
    long read = partitions(left == null ? plan.splits().list() : left);
    return Metric.ofPlanning(read, plan.planning());
  }

  /** Filtered scans differ from others, for a tree takes no node in place of one that it equals. */
  @Override
  public boolean equals(Object other) {
    return other instanceof PennonScan that
        && isPacked() == that.isPacked()
        && isOrdered == that.isOrdered
        && Objects.equals(derivation, that.derivation)
        && runtimeFilters.equals(that.runtimeFilters)
        && plan.identity().equals(that.plan.identity());
  }

  @Override
  public int hashCode() {
    return plan.identity().hashCode();
  }
}
