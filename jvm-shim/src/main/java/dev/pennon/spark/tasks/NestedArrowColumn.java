package dev.pennon.spark.tasks;

import org.apache.arrow.vector.FieldVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Structs, arrays, maps and whatever else Spark reads from Arrow, by its own reader. */
final class NestedArrowColumn extends ArrowColumn {
  private final ArrowColumnVector reader;

  NestedArrowColumn(FieldVector vector) {
    super(vector);
    reader = new ArrowColumnVector(vector);
  }

  @Override
  void point(FieldVector refilled) {
    // The reader looks at the vector itself.
  }

  @Override
  public int getInt(int row) {
    return reader.getInt(row);
  }

  @Override
  public long getLong(int row) {
    return reader.getLong(row);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return reader.getDecimal(row, precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return reader.getUTF8String(row);
  }

  @Override
  public byte[] getBinary(int row) {
    return reader.getBinary(row);
  }

  @Override
  public ColumnarArray getArray(int row) {
    return reader.getArray(row);
  }

  @Override
  public ColumnarMap getMap(int row) {
    return reader.getMap(row);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return reader.getChild(ordinal);
  }
}
