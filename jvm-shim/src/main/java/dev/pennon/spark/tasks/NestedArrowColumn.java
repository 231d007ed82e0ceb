package dev.pennon.spark.tasks;

import java.util.List;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;

/**
 * A struct, array or map of columns, which are read by address, too: generated code of functions
 * with a lambda reads an element before it asks whether that is NULL, which Spark's own readers of
 * Arrow refuse.
 */
final class NestedArrowColumn extends ArrowColumn {
  private final List<ArrowColumn> children;

  NestedArrowColumn(FieldVector vector) {
    super(vector);
    FieldVector parent = vector instanceof MapVector map ? map.getDataVector() : vector;
    children = parent.getChildrenFromFields().stream().map(ArrowColumn::over).toList();
  }

  @Override
  void point(FieldVector refilled) {
    offsets = refilled instanceof ListVector ? refilled.getOffsetBuffer().memoryAddress() : 0;
    children.forEach(ArrowColumn::refill);
  }

  @Override
  public ColumnarArray getArray(int row) {
    int first = start(row);
    return new ColumnarArray(children.get(0), first, start(row + 1) - first);
  }

  @Override
  public ColumnarMap getMap(int row) {
    int first = start(row);
    return new ColumnarMap(children.get(0), children.get(1), first, start(row + 1) - first);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return children.get(ordinal);
  }
}
