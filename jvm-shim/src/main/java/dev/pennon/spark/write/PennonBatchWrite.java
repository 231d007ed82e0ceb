package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerConnection;
import dev.pennon.spark.worker.WorkerFailure;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Turns what the tasks staged into one commit, or into nothing. */
final class PennonBatchWrite implements BatchWrite {
  private final WritePlan plan;

  PennonBatchWrite(WritePlan plan) {
    this.plan = plan;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
    return new ArrowDataWriters(plan.write(), plan.schema());
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    finish("commit_write", messages);
  }

  /** Removes what was staged; a task that failed has removed its own. */
  @Override
  public void abort(WriterCommitMessage[] messages) {
    finish("abort_write", messages);
  }

  private void finish(String op, WriterCommitMessage[] messages) {
    ObjectNode request = plan.table().request(op);
    request.put("write", plan.write());
    ArrayNode staged = request.putArray("staged");
    for (WriterCommitMessage message : messages) {
      if (message instanceof StagedPartitions task) {
        for (String partition : task.staged()) {
          staged.add(partition);
        }
      }
    }
    try {
      WorkerConnection.exchange(request);
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  @Override
  public String toString() {
    return plan.description();
  }
}
