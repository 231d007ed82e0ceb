package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.tasks.ArrowPartitionReaders;
import dev.pennon.spark.worker.Messages;
import java.util.Map;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.internal.SQLConf;

/** A table as a stream of the rows that commits add; which these are is the worker's to say. */
final class PennonStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private final ScanPlan plan;
  private final Map<String, String> options;
  private final String timeZone = SQLConf.get().sessionLocalTimeZone();
  private final ScanPlan.Packing packing = ScanPlan.Packing.ofSession();

  /** Where a stream that takes what is there ends; null for one that goes on. */
  private String until;

  PennonStream(ScanPlan plan, Map<String, String> options) {
    this.plan = plan;
    this.options = options;
  }

  private record PositionReply(String position) {}

  @Override
  public Offset initialOffset() {
    return position(request("start_stream", options));
  }

  /** Not "all": then Spark's limit says whether a batch has to hold what is there, as once. */
  @Override
  public ReadLimit getDefaultReadLimit() {
    return ReadLimit.maxFiles(1);
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("Spark asks with a limit");
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    ObjectNode request = request("find_batch_end", options).put("start", start.json());
    return position(request.put("until", until).put("takes_all", limit instanceof ReadAllAvailable));
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    until = position(request("start_stream", Map.of("startingVersion", "latest"))).json();
  }

  /** A position, whose text is the worker's. */
  @Override
  public Offset deserializeOffset(String json) {
    return new Offset() {
      @Override
      public String json() {
        return json;
      }
    };
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    ObjectNode request = packing.addTo(request("plan_batch", options));
    request.put("start", start.json()).put("end", end.json()).put("plan", plan.ofColumns().plan());
    return Splits.ask(request).toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ArrowPartitionReaders(
        ArrowPartitionReaders.Source.scan(plan.ofColumns().scan(), false, null), plan.schema(), false);
  }

  @Override
  public void commit(Offset end) {}

  @Override
  public void stop() {}

  private ObjectNode request(String operation, Map<String, String> stated) {
    ObjectNode request = plan.table().request(operation).put("time_zone", timeZone);
    return request.set("options", Messages.strings(stated));
  }

  private Offset position(ObjectNode request) {
    return deserializeOffset(Replies.answer(request, PositionReply.class).position());
  }

  @Override
  public String toString() {
    return plan.table().name();
  }
}
