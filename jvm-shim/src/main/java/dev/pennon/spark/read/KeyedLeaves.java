package dev.pennon.spark.read;

import java.util.Arrays;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;

/**
 * What one scan reads under each derived key, as the worker assigned it.
 *
 * <p>Row by row: a key, the leaf's position among the scan's splits, and a text that replaces the
 * leaf's own split where only a part of it is read. A leaf may stand under several keys, and a key
 * without a leaf.
 */
public final class KeyedLeaves {
  private long[] keys = new long[0];
  private int[] leaves = new int[0];
  private String[] splits = new String[0];

  KeyedLeaves() {}

  public int size() {
    return keys.length;
  }

  public long key(int row) {
    return keys[row];
  }

  /** Whether there is anything to read under the key of a row; if not, it is the key's only one. */
  boolean hasLeaf(int row) {
    return leaves[row] >= 0;
  }

  int leaf(int row) {
    return leaves[row];
  }

  /** The text of the part that is read; null for the whole leaf. */
  public String split(int row) {
    return splits[row];
  }

  /** Appends rows of the worker's table that all belong to this scan. */
  void append(VectorSchemaRoot rows, int from, int to) {
    BigIntVector key = (BigIntVector) rows.getVector("key");
    IntVector leaf = (IntVector) rows.getVector("leaf");
    VarCharVector split = (VarCharVector) rows.getVector("split");
    int present = keys.length;
    keys = Arrays.copyOf(keys, present + to - from);
    leaves = Arrays.copyOf(leaves, present + to - from);
    splits = Arrays.copyOf(splits, present + to - from);
    for (int row = from; row < to; row++) {
      int at = present + row - from;
      keys[at] = key.get(row);
      leaves[at] = leaf.get(row);
      splits[at] = split.isNull(row) ? null : split.getObject(row).toString();
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof KeyedLeaves that
        && Arrays.equals(keys, that.keys)
        && Arrays.equals(leaves, that.leaves)
        && Arrays.equals(splits, that.splits);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(keys) + Arrays.hashCode(leaves);
  }
}
