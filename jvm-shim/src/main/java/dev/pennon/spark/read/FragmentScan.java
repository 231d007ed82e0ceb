package dev.pennon.spark.read;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/**
 * A part of a query that the worker executes, as a scan: joins, filters and aggregates over the
 * partitions of one key group per task (design §5).
 */
public final class FragmentScan implements SupportsReportStatistics {
  private final FragmentReply fragment;
  private final StructType schema;
  private final LogicalPlan origin;
  private final long numJoins;

  /**
   * @param fragment what the worker answered
   * @param schema the columns that it sends
   * @param origin the part of the query that this scan stands for, with the same output
   * @param numJoins joins of the whole query when this part was taken
   */
  public FragmentScan(
      FragmentReply fragment, StructType schema, LogicalPlan origin, long numJoins) {
    this.fragment = fragment;
    this.schema = schema;
    this.origin = origin;
    this.numJoins = numJoins;
  }

  public LogicalPlan origin() {
    return origin;
  }

  public long numJoins() {
    return numJoins;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public Batch toBatch() {
    return new FragmentBatch(fragment, schema, origin);
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public Statistics estimateStatistics() {
    return new RowsAndBytes(fragment.rows(), fragment.bytes());
  }

  /** The worker's lines as one, for they stand within a tree of operators. */
  @Override
  public String description() {
    return fragment.description().lines().map(String::strip).collect(Collectors.joining("; "));
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return ReadMetrics.all();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FragmentScan that && isSame(origin, that.origin);
  }

  @Override
  public int hashCode() {
    return origin.semanticHash();
  }

  /** Whether two fragments give the same rows: their columns' ids differ, their plans do not. */
  private static boolean isSame(LogicalPlan origin, LogicalPlan other) {
    return origin == other || origin.canonicalized().equals(other.canonicalized());
  }

  private record FragmentBatch(FragmentReply fragment, StructType schema, LogicalPlan origin)
      implements Batch {
    @Override
    public InputPartition[] planInputPartitions() {
      List<InputPartition> tasks = new ArrayList<>();
      for (int row = 0; row < fragment.tasks().size(); row++) {
        Object[] key = {fragment.tasks().key(row)};
        tasks.add(
            new PennonSplit(List.of(), fragment.tasks().split(row), new GenericInternalRow(key)));
      }
      return tasks.toArray(InputPartition[]::new);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new ArrowPartitionReaders(
          ArrowPartitionReaders.Source.fragment(fragment.scan()), schema, false);
    }

    /** Spark finds exchanges to reuse by this. */
    @Override
    public boolean equals(Object other) {
      return other instanceof FragmentBatch that && isSame(origin, that.origin);
    }

    @Override
    public int hashCode() {
      return origin.semanticHash();
    }
  }
}
