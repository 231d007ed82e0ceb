package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.types.StructType;

/**
 * What the worker planned for one write.
 *
 * @param table the table, pinned to the snapshot that the write starts from, with what is read of it
 * @param schema the columns of the rows that come
 * @param rowId what rows that go are named by; null where the statement changes no single rows
 * @param reply the worker's answer
 * @param queryId Spark's id of the write
 */
record WritePlan(
    ChangedTable table,
    StructType schema,
    StructType rowId,
    PlanWriteReply reply,
    String queryId) {
  /**
   * The worker's answer about a write.
   *
   * @param write what executors send to the worker
   * @param distribution rows that agree on these go to one task; empty: any task
   * @param ordering the order of the rows within a task; empty: any order
   * @param description the text for EXPLAIN
   * @param taskBytes what a task should write, in bytes of Spark's shuffle
   */
  record PlanWriteReply(
      SecretText write,
      List<Transform> distribution,
      List<SortOrder> ordering,
      String description,
      long taskBytes) {}

  /**
   * Plans a write.
   *
   * @param mode what it does with the rows that are there, in a word of the messages
   * @param predicates which rows an overwrite replaces
   */
  static WritePlan request(
      ChangedTable table, LogicalWriteInfo write, String mode, String[] predicates) {
    ObjectNode request = table.handle().request("plan_write");
    request.put("mode", mode).put("query_id", write.queryId());
    request.set("predicates", Messages.strings(predicates));
    request.set("schema", Messages.parse(write.schema().json()));
    request.put("is_stream", isOfStream(write));
    request.set("options", Messages.strings(write.options().asCaseSensitiveMap()));
    PlanWriteReply reply = Replies.answer(request, PlanWriteReply.class);
    StructType rowId = write.rowIdSchema().orElse(null);
    return new WritePlan(table, write.schema(), rowId, reply, write.queryId());
  }

  /** Whether a stream writes, not a statement within its batches: the thread knows its id. */
  private static boolean isOfStream(LogicalWriteInfo write) {
    String stream = SparkSession.active().sparkContext().getLocalProperty("sql.streaming.queryId");
    return write.queryId().equals(stream);
  }
}
