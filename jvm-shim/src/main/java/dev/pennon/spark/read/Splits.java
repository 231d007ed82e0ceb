package dev.pennon.spark.read;

import java.io.ByteArrayInputStream;
import java.nio.channels.Channels;
import java.util.List;

/**
 * The splits of a plan: their number is known, they are made when they are asked for.
 *
 * <p>A plan of 100,000 partitions whose query the worker executes, or whose scan gets fewer splits,
 * asks for its number only.
 */
final class Splits {
  private final int size;
  private byte[] table;
  private List<PennonSplit> made;

  private Splits(int size, byte[] table, List<PennonSplit> made) {
    this.size = size;
    this.table = table;
    this.made = made;
  }

  static Splits of(List<PennonSplit> splits) {
    return new Splits(splits.size(), null, List.copyOf(splits));
  }

  /** Splits that stand in the worker's table, as it came. */
  static Splits in(byte[] table, int size) {
    return new Splits(size, table, null);
  }

  int size() {
    return size;
  }

  synchronized List<PennonSplit> list() {
    if (made == null) {
      made = SplitTable.read(Channels.newChannel(new ByteArrayInputStream(table)));
      table = null;
    }
    return made;
  }
}
