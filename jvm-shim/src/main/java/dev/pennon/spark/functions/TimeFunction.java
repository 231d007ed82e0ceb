package dev.pennon.spark.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * {@code year}, {@code month}, {@code day} and {@code hour}, {@code years}, {@code months}, {@code
 * days} and {@code hours} of a date or a timestamp.
 */
abstract class TimeFunction extends PennonFunction<Integer>
    implements ReducibleFunction<Integer, Integer> {
  private static final long serialVersionUID = 1L;

  final TimePart part;

  private TimeFunction(TimePart part, DataType source) {
    super(
        "pennon." + part.functionName() + "(" + source.simpleString() + ")",
        DataTypes.IntegerType,
        source);
    this.part = part;
  }

  static TimeFunction bind(TimePart part, DataType source) {
    if (source instanceof TimestampType || source instanceof TimestampNTZType) {
      return new OfTimestamp(part, source);
    }
    if (source instanceof DateType && part.isOfDates()) {
      return new OfDate(part, source);
    }
    throw Transforms.wrongType(
        part.functionName(), source, part.isOfDates() ? "DATE or TIMESTAMP" : "TIMESTAMP");
  }

  /** Units since 1970 have coarser ones; fields of a calendar date do not. */
  @Override
  public Reducer<Integer, Integer> reducer(ReducibleFunction<?, ?> other) {
    boolean isCoarser =
        other instanceof TimeFunction function
            && function.sourceType().equals(sourceType())
            && part instanceof EpochUnit unit
            && function.part instanceof EpochUnit coarser
            && coarser.compareTo(unit) < 0;
    return isCoarser
        ? new Reducers.Coarsen((EpochUnit) part, (EpochUnit) ((TimeFunction) other).part)
        : null;
  }

  @Override
  public Reducer<Integer, Integer> reducer(
      int thisBuckets, ReducibleFunction<?, ?> other, int otherBuckets) {
    return null;
  }

  /** Of TIMESTAMP and TIMESTAMP_NTZ, by their microseconds. */
  public static final class OfTimestamp extends TimeFunction {
    private static final long serialVersionUID = 1L;

    OfTimestamp(TimePart part, DataType source) {
      super(part, source);
    }

    public int invoke(long micros) {
      return part.ofMicros(micros);
    }

    @Override
    public Integer produceResult(InternalRow row) {
      return row.isNullAt(0) ? null : part.ofMicros(row.getLong(0));
    }
  }

  /** Of DATE, by its days. */
  public static final class OfDate extends TimeFunction {
    private static final long serialVersionUID = 1L;

    OfDate(TimePart part, DataType source) {
      super(part, source);
    }

    public int invoke(int days) {
      return part.ofDays(days);
    }

    @Override
    public Integer produceResult(InternalRow row) {
      return row.isNullAt(0) ? null : part.ofDays(row.getInt(0));
    }
  }
}
