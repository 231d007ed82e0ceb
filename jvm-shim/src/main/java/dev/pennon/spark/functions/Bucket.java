package dev.pennon.spark.functions;

import java.math.BigInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code bucket(N, column)}: the absolute value, in 64 bits, of the Murmur3 hash, modulo N.
 *
 * <p>Hashed are 8 bytes little-endian for every integer width, boolean, date (days) and timestamp
 * (microseconds), UTF-8, raw bytes, and for decimals the minimal big-endian two's complement of the
 * unscaled value. There is one class per form that Spark has for a value. Spark hands NULL to a
 * call whose argument is an object, and leaves out one whose argument is a primitive.
 */
abstract class Bucket extends PennonFunction<Integer>
    implements ReducibleFunction<Integer, Integer> {
  private static final long serialVersionUID = 1L;
  private static final int SEED = 0;

  private Bucket(DataType source, String family) {
    super(
        "pennon.bucket(" + family + ")", DataTypes.IntegerType, DataTypes.IntegerType, source);
  }

  static Bucket bind(DataType source) {
    if (source instanceof LongType) {
      return new OfLong(source, "bigint");
    }
    if (source instanceof IntegerType) {
      return new OfInt(source, "bigint");
    }
    if (source instanceof ShortType) {
      return new OfShort(source);
    }
    if (source instanceof ByteType) {
      return new OfByte(source);
    }
    if (source instanceof DateType) {
      return new OfInt(source, "date");
    }
    if (source instanceof TimestampType || source instanceof TimestampNTZType) {
      return new OfLong(source, source.simpleString());
    }
    if (source instanceof BooleanType) {
      return new OfBoolean(source);
    }
    if (source instanceof BinaryType) {
      return new OfBinary(source);
    }
    if (source instanceof DecimalType decimal) {
      return new OfDecimal(decimal);
    }
    if (Transforms.isPlainString(source)) {
      return new OfString(source);
    }
    throw Transforms.wrongType(
        "bucket", source, "integers, DECIMAL, DATE, TIMESTAMP, STRING, BINARY or BOOLEAN");
  }

  /** Both sides of a join may reduce: 6 and 4 buckets meet in 2. */
  @Override
  public Reducer<Integer, Integer> reducer(
      int thisBuckets, ReducibleFunction<?, ?> other, int otherBuckets) {
    if (!equals(other)) {
      return null;
    }
    int common = BigInteger.valueOf(thisBuckets).gcd(BigInteger.valueOf(otherBuckets)).intValue();
    return common > 1 && common < thisBuckets ? new Reducers.Modulo(common) : null;
  }

  @Override
  public Reducer<Integer, Integer> reducer(ReducibleFunction<?, ?> other) {
    return null;
  }

  static int ofHash(int numBuckets, int hash) {
    if (numBuckets <= 0) {
      throw new IllegalArgumentException(
          "bucket needs a positive number of buckets, not " + numBuckets);
    }
    return (int) (Math.abs((long) hash) % numBuckets);
  }

  static int ofLong(int numBuckets, long value) {
    return ofHash(numBuckets, ValueHash.ofLong(value, SEED));
  }

  @Override
  public Integer produceResult(InternalRow row) {
    return row.isNullAt(1) ? null : ofValue(row.getInt(0), row.get(1, sourceType()));
  }

  /** The bucket of a value that is an object in Spark's internal form. */
  static Integer ofValue(int numBuckets, Object value) {
    return value == null ? null : ofHash(numBuckets, ValueHash.of(value, SEED));
  }

  /** BIGINT, and the timestamps by their microseconds. */
  public static final class OfLong extends Bucket {
    private static final long serialVersionUID = 1L;

    OfLong(DataType source, String family) {
      super(source, family);
    }

    public static int invoke(int numBuckets, long value) {
      return ofLong(numBuckets, value);
    }
  }

  /** INT, and DATE by its days. */
  public static final class OfInt extends Bucket {
    private static final long serialVersionUID = 1L;

    OfInt(DataType source, String family) {
      super(source, family);
    }

    public static int invoke(int numBuckets, int value) {
      return ofLong(numBuckets, value);
    }
  }

  /** SMALLINT. */
  public static final class OfShort extends Bucket {
    private static final long serialVersionUID = 1L;

    OfShort(DataType source) {
      super(source, "bigint");
    }

    public static int invoke(int numBuckets, short value) {
      return ofLong(numBuckets, value);
    }
  }

  /** TINYINT. */
  public static final class OfByte extends Bucket {
    private static final long serialVersionUID = 1L;

    OfByte(DataType source) {
      super(source, "bigint");
    }

    public static int invoke(int numBuckets, byte value) {
      return ofLong(numBuckets, value);
    }
  }

  /** BOOLEAN as 0 and 1. */
  public static final class OfBoolean extends Bucket {
    private static final long serialVersionUID = 1L;

    OfBoolean(DataType source) {
      super(source, "boolean");
    }

    public static int invoke(int numBuckets, boolean value) {
      return ofLong(numBuckets, value ? 1 : 0);
    }
  }

  /** STRING by its UTF-8 bytes. */
  public static final class OfString extends Bucket {
    private static final long serialVersionUID = 1L;

    OfString(DataType source) {
      super(source, "string");
    }

    public static Integer invoke(int numBuckets, UTF8String value) {
      return ofValue(numBuckets, value);
    }
  }

  /** BINARY as it is. */
  public static final class OfBinary extends Bucket {
    private static final long serialVersionUID = 1L;

    OfBinary(DataType source) {
      super(source, "binary");
    }

    public static Integer invoke(int numBuckets, byte[] value) {
      return ofValue(numBuckets, value);
    }
  }

  /** DECIMAL by its unscaled value: the scale is part of the name, the precision is not. */
  public static final class OfDecimal extends Bucket {
    private static final long serialVersionUID = 1L;

    OfDecimal(DecimalType source) {
      super(source, "decimal(scale " + source.scale() + ")");
    }

    public static Integer invoke(int numBuckets, Decimal value) {
      return ofValue(numBuckets, value);
    }
  }
}
