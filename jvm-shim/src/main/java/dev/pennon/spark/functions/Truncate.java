package dev.pennon.spark.functions;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code truncate_W(column)}: the first W characters of a string; of a number {@code v - v % W}.
 *
 * <p>The remainder has the sign of the dividend, as the specification's expression has it in
 * DataFusion: -7 by 10 is 0. A width counts units, also of a decimal: 12.34 by 10 is 10.00.
 */
public final class Truncate extends PennonFunction<Object>
    implements ReducibleFunction<Object, Object> {
  private static final long serialVersionUID = 1L;

  private final int width;

  Truncate(int width, DataType source) {
    super("pennon.truncate[" + width + "](" + source.simpleString() + ")", source, source);
    checkType(source);
    this.width = width;
  }

  @Override
  public Object produceResult(InternalRow row) {
    return row.isNullAt(0) ? null : truncated(row.get(0, sourceType()), width);
  }

  /** A wider number and a shorter prefix are functions of the finer ones. */
  @Override
  public Reducer<Object, Object> reducer(ReducibleFunction<?, ?> other) {
    if (!(other instanceof Truncate truncate) || !truncate.sourceType().equals(sourceType())) {
      return null;
    }
    boolean coarser =
        Transforms.isPlainString(sourceType())
            ? truncate.width < width
            : truncate.width > width && truncate.width % width == 0;
    return coarser ? new Reducers.Truncated(truncate.width, sourceType()) : null;
  }

  private static void checkType(DataType source) {
    boolean isNumber = source instanceof IntegralType || source instanceof DecimalType;
    if (!isNumber && !Transforms.isPlainString(source)) {
      throw Transforms.wrongType("truncate", source, "integers, DECIMAL or STRING");
    }
  }

  static Object truncated(Object value, int width) {
    if (width <= 0) {
      throw new IllegalArgumentException("truncate needs a positive width, not " + width);
    }
    if (value instanceof UTF8String text) {
      return text.substring(0, width);
    }
    if (value instanceof Integer number) {
      return number - number % width;
    }
    if (value instanceof Long number) {
      return number - number % width;
    }
    if (value instanceof Short number) {
      return (short) (number - number % width);
    }
    if (value instanceof Byte number) {
      return (byte) (number - number % width);
    }
    return truncated((Decimal) value, width);
  }

  private static Decimal truncated(Decimal value, int width) {
    BigInteger unit = BigInteger.TEN.pow(value.scale()).multiply(BigInteger.valueOf(width));
    BigInteger unscaled = value.toJavaBigDecimal().unscaledValue();
    BigDecimal kept = new BigDecimal(unscaled.subtract(unscaled.remainder(unit)), value.scale());
    return Decimal.apply(kept, value.precision(), value.scale());
  }

  /** {@code truncate(W, column)} as a user calls it in SQL. */
  public static final class WithWidth extends PennonFunction<Object> {
    private static final long serialVersionUID = 1L;

    WithWidth(DataType source) {
      super(
          "pennon.truncate(" + source.simpleString() + ")",
          source,
          DataTypes.IntegerType,
          source);
      checkType(source);
    }

    @Override
    public Object produceResult(InternalRow row) {
      return row.isNullAt(0) || row.isNullAt(1)
          ? null
          : truncated(row.get(1, sourceType()), row.getInt(0));
    }
  }
}
