package dev.pennon.spark.write;

import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/**
 * A planned write: rows come grouped by partition, so that a task holds one open at a time.
 *
 * <p>Grouped, but not strictly: a partition that has more rows than a task should write comes to
 * several, which adaptive execution finds out, and the commit takes what each of them staged.
 */
class PennonWrite implements RequiresDistributionAndOrdering {
  protected final WritePlan plan;
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

  @Override
  public BatchWrite toBatch() {
    return reporting(new PennonBatchWrite(plan));
  }

  @Override
  public StreamingWrite toStreaming() {
    return new PennonStreamingWrite(plan);
  }

  /** Keeps the write whose commit says what Spark's page shows. */
  protected <T extends PennonBatchWrite> T reporting(T started) {
    batch = started;
    return started;
  }

  @Override
  public String description() {
    return plan.description();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return WriteMetrics.all();
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return batch == null ? new CustomTaskMetric[0] : batch.written();
  }
}
