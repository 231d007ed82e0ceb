package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.tasks.PennonSplit;
import dev.pennon.spark.worker.ReplyTable;
import dev.pennon.spark.worker.SecretText;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The splits of a plan: their number is known, they are made when they are asked for.
 *
 * <p>A plan of 100,000 partitions whose query the worker executes, or whose scan gets fewer splits,
 * asks for its number only.
 */
final class Splits {
  private static final int UNKNOWN = -1;

  private int size;
  private Supplier<List<PennonSplit>> source;
  private List<PennonSplit> made;

  private Splits(int size, Supplier<List<PennonSplit>> source, List<PennonSplit> made) {
    this.size = size;
    this.source = source;
    this.made = made;
  }

  static Splits of(List<PennonSplit> splits) {
    return new Splits(splits.size(), null, List.copyOf(splits));
  }

  /** Splits of a known number that are asked of the worker when they are needed. */
  static Splits later(int size, Supplier<List<PennonSplit>> source) {
    return new Splits(size, source, null);
  }

  /** Splits whose number only is known once they are made. */
  static Splits later(Supplier<List<PennonSplit>> source) {
    return new Splits(UNKNOWN, source, null);
  }

  synchronized int size() {
    return size == UNKNOWN ? list().size() : size;
  }

  /** The splits when somebody has asked for them before. */
  synchronized Optional<List<PennonSplit>> ifMade() {
    return Optional.ofNullable(made);
  }

  synchronized List<PennonSplit> list() {
    if (made == null) {
      made = List.copyOf(source.get());
      size = made.size();
      source = null;
    }
    return made;
  }

  /** Asks for splits: a table follows the reply, with object_id, split, key_0, … */
  static List<PennonSplit> ask(ObjectNode request) {
    List<PennonSplit> splits = new ArrayList<>();
    ReplyTable.answer(request, batch -> append(batch, splits));
    return splits;
  }

  private static void append(VectorSchemaRoot batch, List<PennonSplit> splits) {
    FieldVector objectIds = batch.getVector("object_id");
    FieldVector tokens = batch.getVector("split");
    List<FieldVector> keys =
        batch.getFieldVectors().stream()
            .filter(vector -> vector.getName().startsWith("key_"))
            .toList();
    List<InternalRow> keyRows = ReplyTable.rows(batch, keys);
    for (int row = 0; row < keyRows.size(); row++) {
      splits.add(
          new PennonSplit(
              objectIds.getObject(row).toString(),
              new SecretText(tokens.getObject(row).toString()),
              keyRows.get(row)));
    }
  }
}
