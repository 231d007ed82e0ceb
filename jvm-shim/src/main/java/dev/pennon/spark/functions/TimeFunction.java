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
public final class TimeFunction extends PennonFunction<Integer>
    implements ReducibleFunction<Integer, Integer> {
  private static final long serialVersionUID = 1L;

  private final TimePart part;

  private TimeFunction(TimePart part, DataType source) {
    super(
        "pennon." + part.functionName() + "(" + source.simpleString() + ")",
        DataTypes.IntegerType,
        source);
    this.part = part;
  }

  static TimeFunction bind(TimePart part, DataType source) {
    boolean isTimestamp = source instanceof TimestampType || source instanceof TimestampNTZType;
    if (isTimestamp || (source instanceof DateType && part.isOfDates())) {
      return new TimeFunction(part, source);
    }
    throw Transforms.wrongType(
        part.functionName(), source, part.isOfDates() ? "DATE or TIMESTAMP" : "TIMESTAMP");
  }

  /** Units since 1970 have coarser ones; fields of a calendar date do not. */
  @Override
  public Reducer<Integer, Integer> reducer(ReducibleFunction<?, ?> other) {
    return other instanceof TimeFunction function
            && function.sourceType().equals(sourceType())
            && function.part.isCoarserThan(part)
        ? new Reducers.Coarsen(part, function.part)
        : null;
  }

  /** Of TIMESTAMP and TIMESTAMP_NTZ. */
  public int invoke(long micros) {
    return part.ofMicros(micros);
  }

  /** Of DATE. */
  public int invoke(int days) {
    return part.ofDays(days);
  }

  @Override
  public Integer produceResult(InternalRow row) {
    if (row.isNullAt(0)) {
      return null;
    }
    return sourceType() instanceof DateType ? invoke(row.getInt(0)) : invoke(row.getLong(0));
  }
}
