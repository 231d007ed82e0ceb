package dev.pennon.spark.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** {@code years}, {@code months}, {@code days} and {@code hours} of a date or a timestamp. */
abstract class EpochFunction extends PennonFunction<Integer>
    implements ReducibleFunction<Integer, Integer> {
  private static final long serialVersionUID = 1L;

  final EpochUnit unit;

  private EpochFunction(EpochUnit unit, DataType source) {
    super(
        "pennon." + unit.functionName() + "(" + source.simpleString() + ")",
        DataTypes.IntegerType,
        source);
    this.unit = unit;
  }

  static EpochFunction bind(EpochUnit unit, DataType source) {
    if (source instanceof TimestampType || source instanceof TimestampNTZType) {
      return new OfTimestamp(unit, source);
    }
    if (source instanceof DateType && unit != EpochUnit.HOURS) {
      return new OfDate(unit, source);
    }
    throw Transforms.wrongType(
        unit.functionName(),
        source,
        unit == EpochUnit.HOURS ? "TIMESTAMP" : "DATE or TIMESTAMP");
  }

  @Override
  public Reducer<Integer, Integer> reducer(ReducibleFunction<?, ?> other) {
    boolean coarser =
        other instanceof EpochFunction function
            && function.sourceType().equals(sourceType())
            && function.unit.compareTo(unit) < 0;
    return coarser ? new Reducers.Coarsen(unit, ((EpochFunction) other).unit) : null;
  }

  @Override
  public Reducer<Integer, Integer> reducer(
      int thisBuckets, ReducibleFunction<?, ?> other, int otherBuckets) {
    return null;
  }

  /** Of TIMESTAMP and TIMESTAMP_NTZ, by their microseconds. */
  public static final class OfTimestamp extends EpochFunction {
    private static final long serialVersionUID = 1L;

    OfTimestamp(EpochUnit unit, DataType source) {
      super(unit, source);
    }

    public int invoke(long micros) {
      return unit.ofMicros(micros);
    }

    @Override
    public Integer produceResult(InternalRow row) {
      return row.isNullAt(0) ? null : unit.ofMicros(row.getLong(0));
    }
  }

  /** Of DATE, by its days. */
  public static final class OfDate extends EpochFunction {
    private static final long serialVersionUID = 1L;

    OfDate(EpochUnit unit, DataType source) {
      super(unit, source);
    }

    public int invoke(int days) {
      return unit.ofDays(days);
    }

    @Override
    public Integer produceResult(InternalRow row) {
      return row.isNullAt(0) ? null : unit.ofDays(row.getInt(0));
    }
  }
}
