package dev.pennon.spark.write;

import dev.pennon.spark.tasks.Metric;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/**
 * A planned write: rows come grouped by partition, so that a task holds one open at a time.
 *
 * <p>Grouped, but not strictly: a partition that has more rows than a task should write comes to
 * several, which adaptive execution finds out, and the commit takes what each of them staged.
 */
final class PennonWrite implements RequiresDistributionAndOrdering, DeltaWrite {
  private final WritePlan plan;
  private PennonBatchWrite batch;

  PennonWrite(WritePlan plan) {
    this.plan = plan;
  }

  @Override
  public Distribution requiredDistribution() {
    return plan.reply().distribution().isEmpty()
        ? Distributions.unspecified()
        : Distributions.clustered(plan.reply().distribution().toArray(Expression[]::new));
  }

  @Override
  public boolean distributionStrictlyRequired() {
    return false;
  }

  @Override
  public long advisoryPartitionSizeInBytes() {
    return plan.reply().distribution().isEmpty() ? 0 : plan.reply().taskBytes();
  }

  @Override
  public SortOrder[] requiredOrdering() {
    return plan.reply().ordering().toArray(SortOrder[]::new);
  }

  /** Kept, for its commit says what Spark's page shows. */
  @Override
  public DeltaBatchWrite toBatch() {
    batch = new PennonBatchWrite(plan, new Commit(plan.table(), plan.queryId()));
    return batch;
  }

  @Override
  public StreamingWrite toStreaming() {
    return new PennonStreamingWrite(plan);
  }

  @Override
  public String description() {
    return plan.reply().description();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return Metric.shown(plan.rowId() == null ? Metric.OF_WRITE : Metric.OF_ROW_CHANGES);
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return batch == null ? new CustomTaskMetric[0] : batch.written();
  }
}
