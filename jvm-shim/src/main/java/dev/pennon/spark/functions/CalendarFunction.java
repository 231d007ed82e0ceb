package dev.pennon.spark.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** {@code year}, {@code month}, {@code day} and {@code hour} of a date or a timestamp. */
abstract class CalendarFunction extends PennonFunction<Integer> {
  private static final long serialVersionUID = 1L;

  final CalendarField field;

  private CalendarFunction(CalendarField field, DataType source) {
    super(
        "pennon." + field.functionName() + "(" + source.simpleString() + ")",
        DataTypes.IntegerType,
        source);
    this.field = field;
  }

  static CalendarFunction bind(CalendarField field, DataType source) {
    if (source instanceof TimestampType || source instanceof TimestampNTZType) {
      return new OfTimestamp(field, source);
    }
    if (source instanceof DateType && field != CalendarField.HOUR) {
      return new OfDate(field, source);
    }
    throw Transforms.wrongType(
        field.functionName(),
        source,
        field == CalendarField.HOUR ? "TIMESTAMP" : "DATE or TIMESTAMP");
  }

  /** Of TIMESTAMP and TIMESTAMP_NTZ, by their microseconds. */
  public static final class OfTimestamp extends CalendarFunction {
    private static final long serialVersionUID = 1L;

    OfTimestamp(CalendarField field, DataType source) {
      super(field, source);
    }

    public int invoke(long micros) {
      return field.ofMicros(micros);
    }

    @Override
    public Integer produceResult(InternalRow row) {
      return row.isNullAt(0) ? null : field.ofMicros(row.getLong(0));
    }
  }

  /** Of DATE, by its days. */
  public static final class OfDate extends CalendarFunction {
    private static final long serialVersionUID = 1L;

    OfDate(CalendarField field, DataType source) {
      super(field, source);
    }

    public int invoke(int days) {
      return field.ofDays(days);
    }

    @Override
    public Integer produceResult(InternalRow row) {
      return row.isNullAt(0) ? null : field.ofDays(row.getInt(0));
    }
  }
}
