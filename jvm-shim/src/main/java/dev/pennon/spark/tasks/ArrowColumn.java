package dev.pennon.spark.tasks;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.EnumSet;
import java.util.Set;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.NullVector;
import org.apache.arrow.vector.TimeNanoVector;
import org.apache.arrow.vector.types.Types.MinorType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of a stream of Arrow batches, read by address.
 *
 * <p>Spark's own ArrowColumnVector asks an accessor of any type for each value, which checks bounds
 * and NULLs; here a value is read where it lies, so that generated code inlines what reads it. Spark
 * asks a column for values of its own type only, and the reader has compared that type with the
 * vector's. The column is pointed anew at each batch, as the vectors of Spark's Parquet reader are:
 * who holds a value for longer than its batch copies it. ArrowColumnVectors would be taken for
 * batches that stay (Spark 4.3 hands such to Python without a copy), so no column here is one.
 */
class ArrowColumn extends ColumnVector {
  private static final Set<MinorType> READ_BY_ADDRESS =
      EnumSet.of(
          MinorType.BIT, MinorType.TINYINT, MinorType.SMALLINT, MinorType.INT,
          MinorType.BIGINT, MinorType.FLOAT4, MinorType.FLOAT8, MinorType.DATEDAY,
          MinorType.TIMESTAMPMICRO, MinorType.TIMESTAMPMICROTZ, MinorType.TIMENANO, MinorType.INTERVALYEAR,
          MinorType.DURATION, MinorType.DECIMAL, MinorType.VARCHAR, MinorType.VARBINARY);
  private static final int DECIMAL_BYTES = 16;

  /** In the place of an address: a vector of NULLs alone has no bits. */
  private static final long ALL_NULL = -1;

  private final FieldVector vector;

  /** Where the values are. */
  private long values;

  /** Where the ends of strings, binaries, arrays and maps are; zero for other types. */
  long offsets;

  /** Where the bits of the rows that are not NULL are; zero where none is NULL. */
  private long validity;

  private int numNulls;

  /** Of a decimal of up to 18 digits: eight where its unscaled value alone was sent. */
  private final int bytesOfShortDecimal;

  ArrowColumn(FieldVector vector, DataType type) {
    super(type);
    this.vector = vector;
    this.bytesOfShortDecimal = vector instanceof BigIntVector ? Long.BYTES : DECIMAL_BYTES;
  }

  /** The column over a vector that a stream refills. */
  static ArrowColumn over(FieldVector vector, DataType expected) {
    boolean isUnscaled = vector instanceof BigIntVector && DecimalType.is64BitDecimalType(expected);
    // Of any precision; Spark before 4.3 has the type unfinished.
    boolean isTime = vector instanceof TimeNanoVector && expected.typeName().startsWith("time(");
    DataType type = isUnscaled || isTime ? expected : ArrowUtils.fromArrowField(vector.getField());
    return READ_BY_ADDRESS.contains(vector.getMinorType())
        ? new ArrowColumn(vector, type)
        : new NestedArrowColumn(vector, type);
  }

  /** Points at what the vector holds now. */
  final void refill() {
    numNulls = vector.getNullCount();
    boolean hasBits = numNulls > 0 && !(vector instanceof NullVector);
    validity = hasBits ? vector.getValidityBuffer().memoryAddress() : numNulls > 0 ? ALL_NULL : 0;
    point(vector);
  }

  /** Points at the values. */
  void point(FieldVector refilled) {
    values = refilled.getDataBuffer().memoryAddress();
    if (refilled instanceof BaseVariableWidthVector) {
      offsets = refilled.getOffsetBuffer().memoryAddress();
    }
  }

  private static boolean isSet(long bits, int row) {
    return (Platform.getByte(null, bits + (row >> 3)) >> (row & 7) & 1) != 0;
  }

  @Override
  public final boolean hasNull() {
    return numNulls > 0;
  }

  @Override
  public final int numNulls() {
    return numNulls;
  }

  @Override
  public final boolean isNullAt(int row) {
    return validity != 0 && (validity == ALL_NULL || !isSet(validity, row));
  }

  /** Nothing: the stream frees what it fills. */
  @Override
  public final void close() {}

  @Override
  public boolean getBoolean(int row) {
    return isSet(values, row);
  }

  @Override
  public byte getByte(int row) {
    return Platform.getByte(null, values + row);
  }

  @Override
  public short getShort(int row) {
    return Platform.getShort(null, values + ((long) row << 1));
  }

  /** INT, dates in days, and intervals in months. */
  @Override
  public int getInt(int row) {
    return Platform.getInt(null, values + ((long) row << 2));
  }

  /** BIGINT, timestamps and intervals in microseconds, and times in nanoseconds. */
  @Override
  public long getLong(int row) {
    return Platform.getLong(null, values + ((long) row << 3));
  }

  @Override
  public float getFloat(int row) {
    return Platform.getFloat(null, values + ((long) row << 2));
  }

  @Override
  public double getDouble(int row) {
    return Platform.getDouble(null, values + ((long) row << 3));
  }

  /** Called for a NULL, too: Spark looks at the row afterwards. */
  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    if (isNullAt(row)) {
      return null;
    }
    if (precision <= Decimal.MAX_LONG_DIGITS()) {
      // The unscaled value, or the lower half of an element's sixteen bytes.
      long unscaled = Platform.getLong(null, values + (long) row * bytesOfShortDecimal);
      return Decimal.createUnsafe(unscaled, precision, scale);
    }
    long first = values + (long) row * DECIMAL_BYTES;
    byte[] bigEndian = new byte[DECIMAL_BYTES];
    for (int i = 0; i < DECIMAL_BYTES; i++) {
      bigEndian[i] = Platform.getByte(null, first + DECIMAL_BYTES - 1 - i);
    }
    return Decimal.apply(new BigDecimal(new BigInteger(bigEndian), scale), precision, scale);
  }

  /** The bytes where they lie; called for a NULL, too. */
  @Override
  public UTF8String getUTF8String(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = start(row);
    return UTF8String.fromAddress(null, values + start, start(row + 1) - start);
  }

  @Override
  public byte[] getBinary(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = start(row);
    byte[] copied = new byte[start(row + 1) - start];
    Platform.copyMemory(null, values + start, copied, Platform.BYTE_ARRAY_OFFSET, copied.length);
    return copied;
  }

  final int start(int row) {
    return Platform.getInt(null, offsets + ((long) row << 2));
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw new UnsupportedOperationException(dataType().sql());
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw new UnsupportedOperationException(dataType().sql());
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw new UnsupportedOperationException(dataType().sql());
  }
}
