package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerConnection;
import dev.pennon.spark.worker.WorkerFailure;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * The worker's answer about derived keys.
 *
 * @param keysOfScans what is read under each key, by the scan's position
 * @param derivations what the key of a scan stands for and its groups, by the scan's position
 * @param served positions of the joins, groupings and windows that use the keys
 * @param computed what Spark computes the key from on a side without partitioning, by the position
 *     of the join
 * @param ordered positions of the scans whose splits can be read in the order of the scan
 * @param declined positions of the scans that are to be shuffled, and report nothing
 * @param fragments the parts of the query that the worker takes over, by the position of the node
 * @param isOneTask whether the whole query is so small that one task computes it
 * @param verdicts what was found at each join, aggregate and window, for people
 */
public record DerivedKeyReply(
    Map<Integer, KeyedLeaves> keysOfScans,
    Map<Integer, String> derivations,
    Set<Integer> served,
    Map<Integer, List<Computed>> computed,
    Set<Integer> ordered,
    Set<Integer> declined,
    Map<Integer, FragmentReply> fragments,
    boolean isOneTask,
    JsonNode verdicts) {
  /** A function of attributes, which are named by their expression ids. */
  public record Computed(String function, int numBuckets, List<Long> attributes) {}


  /** Sends the request and reads the reply with its keys. */
  public static DerivedKeyReply ask(ObjectNode request) {
    try {
      WorkerConnection.Asked asked = WorkerConnection.ask(request);
      return read(asked.connection(), asked.reply());
    } catch (WorkerFailure failure) {
      throw failure.raise();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static DerivedKeyReply read(WorkerConnection answering, JsonNode reply)
      throws IOException {
    try (WorkerConnection connection = answering) {
      Set<Integer> served = positions(Messages.field(reply, "DeriveKeysReply", "served"));
      Map<Integer, KeyedLeaves> keys = new HashMap<>();
      Map<Integer, String> derivations = new HashMap<>();
      Messages.field(reply, "DeriveKeysReply", "scans").properties().forEach(
          scan -> {
            Integer position = Integer.valueOf(scan.getKey());
            keys.put(position, new KeyedLeaves());
            derivations.put(position, scan.getValue().asText());
          });
      try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("derived keys", 0, Long.MAX_VALUE);
          ArrowStreamReader reader = new ArrowStreamReader(connection.arrowChannel(), allocator)) {
        while (reader.loadNextBatch()) {
          append(keys, reader.getVectorSchemaRoot());
        }
      }
      connection.release();
      return new DerivedKeyReply(
          keys,
          derivations,
          served,
          computed(Messages.field(reply, "DeriveKeysReply", "computed")),
          positions(Messages.field(reply, "DeriveKeysReply", "ordered")),
          positions(Messages.field(reply, "DeriveKeysReply", "declined")),
          FragmentReply.ofReply(reply, keys),
          Messages.field(reply, "DeriveKeysReply", "one_task").asBoolean(),
          Messages.field(reply, "DeriveKeysReply", "verdicts"));
    }
  }

  public boolean changesThePlan() {
    return !served.isEmpty() || !declined.isEmpty() || !fragments.isEmpty();
  }

  private static Set<Integer> positions(JsonNode numbers) {
    Set<Integer> positions = new HashSet<>();
    numbers.forEach(position -> positions.add(position.asInt()));
    return positions;
  }

  private static Map<Integer, List<Computed>> computed(JsonNode joins) {
    Map<Integer, List<Computed>> byJoin = new HashMap<>();
    joins.properties().forEach(
        join -> {
          List<Computed> functions = new ArrayList<>();
          for (JsonNode function : join.getValue()) {
            List<Long> attributes = new ArrayList<>();
            Messages.field(function, "ComputedKey", "attributes").forEach(id -> attributes.add(id.asLong()));
            functions.add(
                new Computed(
                    Messages.field(function, "ComputedKey", "function").asText(),
                    Messages.field(function, "ComputedKey", "num_buckets").asInt(),
                    attributes));
          }
          byJoin.put(Integer.valueOf(join.getKey()), functions);
        });
    return byJoin;
  }

  /** Rows of one scan stand together. */
  private static void append(Map<Integer, KeyedLeaves> keys, VectorSchemaRoot rows) {
    IntVector scans = (IntVector) rows.getVector("scan");
    int from = 0;
    while (from < scans.getValueCount()) {
      int scan = scans.get(from);
      int to = from;
      while (to < scans.getValueCount() && scans.get(to) == scan) {
        to++;
      }
      keys.computeIfAbsent(scan, position -> new KeyedLeaves()).append(rows, from, to);
      from = to;
    }
  }
}
