package dev.pennon.spark.write;

import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/**
 * Turns what the tasks of a micro batch staged into one commit.
 *
 * <p>A stream that ended behind the commit of a batch and before its own note of it sends the batch
 * again when it is restarted: the commit has the same id then, and is not made twice.
 */
final class PennonStreamingWrite implements StreamingWrite {
  private static final long NONE = -1;

  private final WritePlan plan;
  private long sent = NONE;

  PennonStreamingWrite(WritePlan plan) {
    this.plan = plan;
  }

  @Override
  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo physical) {
    return new ArrowDataWriters(plan.reply().write(), plan.schema(), null);
  }

  @Override
  public void commit(long epochId, WriterCommitMessage[] messages) {
    sent = epochId;
    ofEpoch(epochId).commit(messages);
  }

  /**
   * Removes what was staged. Not what a commit was asked for: it may still be made, and to forbid
   * that would forbid it to the restarted stream, too. Vacuum removes such files.
   */
  @Override
  public void abort(long epochId, WriterCommitMessage[] messages) {
    if (sent != epochId) {
      ofEpoch(epochId).abort(messages);
    }
  }

  private PennonBatchWrite ofEpoch(long epochId) {
    return new PennonBatchWrite(plan, Commit.ofEpoch(plan.table(), plan.queryId(), epochId));
  }

  @Override
  public String toString() {
    return plan.reply().description();
  }
}
