package dev.pennon.spark.functions;

import java.math.BigInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code bucket(N, column)}: the absolute value, in 64 bits, of the Murmur3 hash, modulo N.
 *
 * <p>Hashed are 8 bytes little-endian for every integer width, boolean, date (days) and timestamp
 * (microseconds), UTF-8, raw bytes, and for decimals the minimal big-endian two's complement of the
 * unscaled value. Spark calls the {@code invoke} for the form that it has of a value: it hands NULL to
 * one whose argument is an object, and leaves the call out where the argument is a primitive.
 */
public final class Bucket extends PennonFunction<Integer>
    implements ReducibleFunction<Integer, Integer> {
  private static final long serialVersionUID = 1L;
  private static final int SEED = 0;

  private Bucket(DataType source, String family) {
    super("pennon.bucket(" + family + ")", DataTypes.IntegerType, DataTypes.IntegerType, source);
  }

  static Bucket bind(DataType source) {
    return new Bucket(source, family(source));
  }

  /** What columns have in common whose equal values have equal buckets. */
  private static String family(DataType source) {
    if (source instanceof IntegralType) {
      return "bigint";
    }
    if (source instanceof DecimalType decimal) {
      // The scale changes the unscaled value, the precision does not.
      return "decimal(scale " + decimal.scale() + ")";
    }
    if (Transforms.isPlainString(source)) {
      return "string";
    }
    if (source instanceof DateType || source instanceof TimestampType
        || source instanceof TimestampNTZType || source instanceof BooleanType
        || source instanceof BinaryType) {
      return source.simpleString();
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

  @Override
  public Integer produceResult(InternalRow row) {
    return row.isNullAt(1) ? null : ofValue(row.getInt(0), row.get(1, sourceType()));
  }

  private static Integer ofValue(int numBuckets, Object value) {
    return value == null ? null : ofHash(numBuckets, ValueHash.of(value, SEED));
  }

  public static int invoke(int numBuckets, long value) {
    return ofHash(numBuckets, ValueHash.ofLong(value, SEED));
  }

  public static int invoke(int numBuckets, int value) {
    return invoke(numBuckets, (long) value);
  }

  public static int invoke(int numBuckets, short value) {
    return invoke(numBuckets, (long) value);
  }

  public static int invoke(int numBuckets, byte value) {
    return invoke(numBuckets, (long) value);
  }

  public static int invoke(int numBuckets, boolean value) {
    return invoke(numBuckets, value ? 1L : 0L);
  }

  public static Integer invoke(int numBuckets, UTF8String value) {
    return ofValue(numBuckets, value);
  }

  public static Integer invoke(int numBuckets, byte[] value) {
    return ofValue(numBuckets, value);
  }

  public static Integer invoke(int numBuckets, Decimal value) {
    return ofValue(numBuckets, value);
  }
}
