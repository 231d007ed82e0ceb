package dev.pennon.spark.fragments;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.tasks.KeyedLeaf;
import dev.pennon.spark.worker.ReplyTable;
import dev.pennon.spark.worker.SecretText;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;

/**
 * The worker's answer about derived keys, and the keys.
 *
 * @param reply the answer
 * @param leaves what is read under each key, by the position of the scan or of the fragment; those of
 *     one key stand together
 */
public record DerivedKeys(DeriveKeysReply reply, Map<Integer, List<KeyedLeaf>> leaves) {
  /** Sends the request and reads the reply with its keys. */
  public static DerivedKeys ask(ObjectNode request) {
    Map<Integer, List<KeyedLeaf>> leaves = new HashMap<>();
    JsonNode answer = ReplyTable.answer(request, rows -> append(leaves, rows));
    return new DerivedKeys(Replies.read(answer, DeriveKeysReply.class), leaves);
  }

  /** What is read by a scan, or by a fragment, under its keys. */
  public List<KeyedLeaf> of(int position) {
    return leaves.getOrDefault(position, List.of());
  }

  private static void append(Map<Integer, List<KeyedLeaf>> leaves, VectorSchemaRoot rows) {
    IntVector scan = (IntVector) rows.getVector("scan");
    BigIntVector key = (BigIntVector) rows.getVector("key");
    IntVector leaf = (IntVector) rows.getVector("leaf");
    VarCharVector split = (VarCharVector) rows.getVector("split");
    for (int row = 0; row < rows.getRowCount(); row++) {
      SecretText part = split.isNull(row) ? null : new SecretText(split.getObject(row).toString());
      leaves
          .computeIfAbsent(scan.get(row), position -> new ArrayList<>())
          .add(new KeyedLeaf(key.get(row), leaf.get(row), part));
    }
  }
}
