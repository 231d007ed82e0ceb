package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.tasks.Metric;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Turns what the tasks staged into one commit, or into nothing. */
final class PennonBatchWrite implements DeltaBatchWrite {
  private static final Logger LOG = LoggerFactory.getLogger(PennonBatchWrite.class);

  private final WritePlan plan;
  private final Commit commit;
  private CustomTaskMetric[] written = {};

  PennonBatchWrite(WritePlan plan, Commit commit) {
    this.plan = plan;
    this.commit = commit;
  }

  @Override
  public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
    return new ArrowDataWriters(plan.reply().write(), plan.schema(), plan.rowId());
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    try {
      make(messages);
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  private void make(WriterCommitMessage... messages) {
    ObjectNode request = request("commit_write", messages);
    request.set("reads", plan.table().reads());
    ArrayNode deleted = request.putArray("deleted");
    tasks(messages).forEach(task -> List.of(task.deleted()).forEach(deleted::add));
    try {
      CommitWriteReply reply = Replies.read(commit.make(request), CommitWriteReply.class);
      written =
          new CustomTaskMetric[] {
            Metric.PARTITIONS_WRITTEN.of(reply.partitions()),
            Metric.FILES_WRITTEN.of(reply.files()),
            Metric.BYTES_WRITTEN.of(reply.bytes())
          };
    } catch (WorkerFailure refusal) {
      plan.table().repeatStatement(refusal, () -> abort(messages));
    }
  }

  private record CommitWriteReply(long partitions, long files, long bytes) {}

  /** What the commit made visible; nothing before it. */
  CustomTaskMetric[] written() {
    return written.clone();
  }

  /**
   * Removes what was staged; a task that failed has removed its own.
   *
   * <p>What cannot be removed is left for vacuum: a failure here would hide the one that led to it.
   */
  @Override
  public void abort(WriterCommitMessage[] messages) {
    try {
      commit.abandon(request("abort_write", messages));
    } catch (WorkerFailure failure) {
      LOG.warn("What a failed write has staged is left: {}", plan.reply().description(), failure);
    }
  }

  private ObjectNode request(String op, WriterCommitMessage... messages) {
    ObjectNode request = commit.named(plan.table().handle().catalogRequest(op));
    ArrayNode staged = request.put("write", plan.reply().write().text()).putArray("staged");
    tasks(messages).forEach(task -> List.of(task.written()).forEach(staged::add));
    return request;
  }

  /** What the tasks staged; a task that failed says nothing. */
  private static Stream<StagedRows> tasks(WriterCommitMessage... messages) {
    return Stream.of(messages).filter(StagedRows.class::isInstance).map(StagedRows.class::cast);
  }

  @Override
  public String toString() {
    return plan.reply().description();
  }
}
