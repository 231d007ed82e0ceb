package dev.pennon.spark.read;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.SmallIntVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TimeStampMicroVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.spark.sql.types.Decimal;
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
 * and NULLs; here each type is a class, so that generated code inlines what reads a value. The
 * column is pointed anew at each batch, as the vectors of Spark's Parquet reader are: who holds a
 * value for longer than its batch copies it. ArrowColumnVectors would be taken for batches that stay
 * (Spark 4.3 hands such to Python without a copy), so no column here is one.
 */
abstract class ArrowColumn extends ColumnVector {
  private static final int BITS = 3;
  private static final int BIT_MASK = 7;

  private final FieldVector vector;

  /** Where the values are. */
  protected long values;

  /** Where the bits of the rows that are not NULL are; zero where none is NULL. */
  private long validity;

  private int numNulls;

  ArrowColumn(FieldVector vector) {
    super(ArrowUtils.fromArrowField(vector.getField()));
    this.vector = vector;
  }

  /** The column over a vector that a stream refills. */
  static ArrowColumn over(FieldVector vector) {
    if (vector instanceof BigIntVector
        || vector instanceof TimeStampMicroTZVector
        || vector instanceof TimeStampMicroVector) {
      return new Longs(vector);
    } else if (vector instanceof IntVector || vector instanceof DateDayVector) {
      return new Ints(vector);
    } else if (vector instanceof Float8Vector) {
      return new Doubles(vector);
    } else if (vector instanceof Float4Vector) {
      return new Floats(vector);
    } else if (vector instanceof DecimalVector decimals) {
      return decimals.getPrecision() <= Decimal.MAX_LONG_DIGITS()
          ? new ShortDecimals(vector)
          : new LongDecimals(vector);
    } else if (vector instanceof VarCharVector) {
      return new Strings(vector);
    } else if (vector instanceof VarBinaryVector) {
      return new Binaries(vector);
    } else if (vector instanceof BitVector) {
      return new Booleans(vector);
    } else if (vector instanceof SmallIntVector) {
      return new Shorts(vector);
    } else if (vector instanceof TinyIntVector) {
      return new Bytes(vector);
    }
    return new NestedArrowColumn(vector);
  }

  /** Points at what the vector holds now. */
  final void refill() {
    numNulls = vector.getNullCount();
    validity = numNulls == 0 ? 0 : vector.getValidityBuffer().memoryAddress();
    point();
  }

  /** Points at the values. */
  void point() {
    values = vector.getDataBuffer().memoryAddress();
  }

  protected final FieldVector vector() {
    return vector;
  }

  private static boolean isSet(long bits, int row) {
    return ((Platform.getByte(null, bits + (row >> BITS)) >> (row & BIT_MASK)) & 1) != 0;
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
    return validity != 0 && !isSet(validity, row);
  }

  /** Nothing: the stream frees what it fills. */
  @Override
  public final void close() {}

  @Override
  public boolean getBoolean(int row) {
    throw unsupported("boolean");
  }

  @Override
  public byte getByte(int row) {
    throw unsupported("byte");
  }

  @Override
  public short getShort(int row) {
    throw unsupported("short");
  }

  @Override
  public int getInt(int row) {
    throw unsupported("int");
  }

  @Override
  public long getLong(int row) {
    throw unsupported("long");
  }

  @Override
  public float getFloat(int row) {
    throw unsupported("float");
  }

  @Override
  public double getDouble(int row) {
    throw unsupported("double");
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw unsupported("array");
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw unsupported("map");
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw unsupported("decimal");
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw unsupported("string");
  }

  @Override
  public byte[] getBinary(int row) {
    throw unsupported("binary");
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw unsupported("struct");
  }

  private UnsupportedOperationException unsupported(String asked) {
    return new UnsupportedOperationException("a column of " + dataType() + " has no " + asked);
  }

  /** BIGINT, and timestamps in microseconds. */
  private static final class Longs extends ArrowColumn {
    Longs(FieldVector vector) {
      super(vector);
    }

    @Override
    public long getLong(int row) {
      return Platform.getLong(null, values + ((long) row << 3));
    }
  }

  /** INT, and dates in days. */
  private static final class Ints extends ArrowColumn {
    Ints(FieldVector vector) {
      super(vector);
    }

    @Override
    public int getInt(int row) {
      return Platform.getInt(null, values + ((long) row << 2));
    }
  }

  private static final class Shorts extends ArrowColumn {
    Shorts(FieldVector vector) {
      super(vector);
    }

    @Override
    public short getShort(int row) {
      return Platform.getShort(null, values + ((long) row << 1));
    }
  }

  private static final class Bytes extends ArrowColumn {
    Bytes(FieldVector vector) {
      super(vector);
    }

    @Override
    public byte getByte(int row) {
      return Platform.getByte(null, values + row);
    }
  }

  private static final class Booleans extends ArrowColumn {
    Booleans(FieldVector vector) {
      super(vector);
    }

    @Override
    public boolean getBoolean(int row) {
      return isSet(values, row);
    }
  }

  private static final class Doubles extends ArrowColumn {
    Doubles(FieldVector vector) {
      super(vector);
    }

    @Override
    public double getDouble(int row) {
      return Platform.getDouble(null, values + ((long) row << 3));
    }
  }

  private static final class Floats extends ArrowColumn {
    Floats(FieldVector vector) {
      super(vector);
    }

    @Override
    public float getFloat(int row) {
      return Platform.getFloat(null, values + ((long) row << 2));
    }
  }

  /** Decimals whose unscaled value fits the lower half of their 16 bytes. */
  private static final class ShortDecimals extends ArrowColumn {
    ShortDecimals(FieldVector vector) {
      super(vector);
    }

    /** Called for a NULL, too: Spark looks at the row afterwards. */
    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      return isNullAt(row)
          ? null
          : Decimal.createUnsafe(
              Platform.getLong(null, values + ((long) row << 4)), precision, scale);
    }
  }

  private static final class LongDecimals extends ArrowColumn {
    private static final int WIDTH = 16;

    LongDecimals(FieldVector vector) {
      super(vector);
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      if (isNullAt(row)) {
        return null;
      }
      byte[] bigEndian = new byte[WIDTH];
      long last = values + ((long) row << 4) + WIDTH - 1;
      for (int i = 0; i < WIDTH; i++) {
        bigEndian[i] = Platform.getByte(null, last - i);
      }
      BigDecimal value = new BigDecimal(new BigInteger(bigEndian), scale);
      return Decimal.apply(value, precision, scale);
    }
  }

  /** Values of any length, between two offsets. */
  private abstract static class Slices extends ArrowColumn {
    private long offsets;

    Slices(FieldVector vector) {
      super(vector);
    }

    @Override
    void point() {
      super.point();
      offsets = vector().getOffsetBuffer().memoryAddress();
    }

    final int start(int row) {
      return Platform.getInt(null, offsets + ((long) row << 2));
    }
  }

  private static final class Strings extends Slices {
    Strings(FieldVector vector) {
      super(vector);
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
  }

  private static final class Binaries extends Slices {
    Binaries(FieldVector vector) {
      super(vector);
    }

    @Override
    public byte[] getBinary(int row) {
      if (isNullAt(row)) {
        return null;
      }
      int start = start(row);
      byte[] copied = new byte[start(row + 1) - start];
      Platform.copyMemory(
          null, values + start, copied, Platform.BYTE_ARRAY_OFFSET, copied.length);
      return copied;
    }
  }
}
