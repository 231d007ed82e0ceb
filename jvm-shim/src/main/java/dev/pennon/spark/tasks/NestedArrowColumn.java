package dev.pennon.spark.tasks;

import java.util.List;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;

/**
 * A struct, array or map of columns, which are read by address, too: generated code of functions
 * with a lambda reads an element before it asks whether that is NULL, which Spark's own readers of
 * Arrow refuse.
 */
final class NestedArrowColumn extends ArrowColumn {
  private final ArrowColumn[] children;

  NestedArrowColumn(FieldVector vector, DataType type) {
    super(vector, type);
    FieldVector parent = vector instanceof MapVector map ? map.getDataVector() : vector;
    children =
        parent.getChildrenFromFields().stream()
            .map(child -> over(child, ArrowUtils.fromArrowField(child.getField())))
            .toArray(ArrowColumn[]::new);
  }

  @Override
  void point(FieldVector refilled) {
    offsets = refilled instanceof ListVector ? refilled.getOffsetBuffer().memoryAddress() : 0;
    List.of(children).forEach(ArrowColumn::refill);
  }

  @Override
  public ColumnarArray getArray(int row) {
    return new ColumnarArray(children[0], start(row), start(row + 1) - start(row));
  }

  @Override
  public ColumnarMap getMap(int row) {
    return new ColumnarMap(children[0], children[1], start(row), start(row + 1) - start(row));
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return children[ordinal];
  }
}
