package dev.pennon.spark.read;

import dev.pennon.spark.tasks.ArrowPartitionReaders;
import dev.pennon.spark.tasks.ArrowPartitionReaders.Source;
import dev.pennon.spark.tasks.PennonSplit;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/**
 * The splits of a scan as they were when Spark asked.
 *
 * @param filtered what runtime filters have left; null for all that was planned
 * @param isDerived whether the key of each split follows its columns
 * @param isOrdered whether rows come in the order that the scan reports
 * @param rowKeys what rows are wanted: Spark asks for readers of a batch that it made before it knew
 */
record PennonBatch(
    ScanPlan plan,
    List<PennonSplit> filtered,
    boolean isDerived,
    boolean isOrdered,
    Supplier<String> rowKeys)
    implements Batch {
  @Override
  public InputPartition[] planInputPartitions() {
    List<PennonSplit> splits = filtered == null ? plan.splits().list() : filtered;
    return splits.toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    Source source = Source.scan(plan.ofColumns().scan(), isOrdered, rowKeys.get());
    return new ArrowPartitionReaders(source, plan.schema(), isDerived);
  }

  /** Spark finds exchanges to reuse by this; it compares runtime filters itself. */
  @Override
  public boolean equals(Object other) {
    return other instanceof PennonBatch that
        && isDerived == that.isDerived
        && isOrdered == that.isOrdered
        && plan.identity().equals(that.plan.identity());
  }

  @Override
  public int hashCode() {
    return plan.identity().hashCode();
  }
}
