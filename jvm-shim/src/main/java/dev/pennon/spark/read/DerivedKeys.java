package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.catalog.Replies;
import dev.pennon.spark.worker.ReplyTable;
import java.util.HashMap;
import java.util.Map;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;

/**
 * The worker's answer about derived keys, and the keys.
 *
 * @param reply the answer
 * @param leaves what is read under each key, by the position of the scan or of the fragment
 */
public record DerivedKeys(DeriveKeysReply reply, Map<Integer, KeyedLeaves> leaves) {
  /** Sends the request and reads the reply with its keys. */
  public static DerivedKeys ask(ObjectNode request) {
    Map<Integer, KeyedLeaves> leaves = new HashMap<>();
    JsonNode answer = ReplyTable.answer(request, rows -> append(leaves, rows));
    DeriveKeysReply reply = Replies.read(answer, DeriveKeysReply.class);
    reply.scans().keySet().forEach(scan -> leaves.putIfAbsent(scan, new KeyedLeaves()));
    reply.fragments().forEach(each -> leaves.putIfAbsent(each.root(), new KeyedLeaves()));
    return new DerivedKeys(reply, leaves);
  }

  /** Rows of one scan stand together. */
  private static void append(Map<Integer, KeyedLeaves> leaves, VectorSchemaRoot rows) {
    IntVector scans = (IntVector) rows.getVector("scan");
    int from = 0;
    while (from < scans.getValueCount()) {
      int scan = scans.get(from);
      int to = from;
      while (to < scans.getValueCount() && scans.get(to) == scan) {
        to++;
      }
      leaves.computeIfAbsent(scan, position -> new KeyedLeaves()).append(rows, from, to);
      from = to;
    }
  }
}
