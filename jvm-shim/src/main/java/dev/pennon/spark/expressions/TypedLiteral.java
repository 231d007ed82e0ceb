package dev.pennon.spark.expressions;

import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import org.apache.spark.unsafe.types.UTF8String;

/** SQL literals that say their type, of values in Spark's internal form. */
public final class TypedLiteral {
  private static final DateTimeFormatter SECONDS_AND_MICROS =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSS", Locale.ROOT);
  private static final int LAST_YEAR = 9999;

  private TypedLiteral() {}

  /**
   * The literal of a value, or NULL.
   *
   * @throws NotWritable when the type, or the value, has no literal that every reader understands
   */
  public static String write(Object value, DataType type) throws NotWritable {
    if (value == null) {
      return "NULL";
    }
    if (type instanceof BooleanType) {
      return (Boolean) value ? "TRUE" : "FALSE";
    }
    if (type instanceof IntegralType) {
      return "CAST(" + value + " AS " + type.sql() + ")";
    }
    if (type instanceof FloatType || type instanceof DoubleType) {
      return "CAST('" + value + "' AS " + type.sql() + ")";
    }
    if (type instanceof DecimalType) {
      String digits = ((Decimal) value).toJavaBigDecimal().toPlainString();
      return "CAST('" + digits + "' AS " + type.sql() + ")";
    }
    if (type instanceof StringType && ((UTF8String) value).isValid()) {
      return "'" + value.toString().replace("\\", "\\\\").replace("'", "\\'") + "'";
    }
    if (type instanceof BinaryType) {
      return "X'" + HexFormat.of().withUpperCase().formatHex((byte[]) value) + "'";
    }
    if (type instanceof StructType struct) {
      return struct((InternalRow) value, struct);
    }
    return time(value, type);
  }

  private static String struct(InternalRow row, StructType type) throws NotWritable {
    List<String> texts = new ArrayList<>();
    for (int i = 0; i < type.length(); i++) {
      StructField field = type.fields()[i];
      Object value = row.isNullAt(i) ? null : row.get(i, field.dataType());
      texts.add(write(UTF8String.fromString(field.name()), DataTypes.StringType));
      texts.add(write(value, field.dataType()));
    }
    return "named_struct(" + String.join(", ", texts) + ")";
  }

  /** The literal of a value of a list: its integers need not say their type, however many. */
  public static String writeMember(Object value, DataType type) throws NotWritable {
    boolean isPlain = type instanceof IntegerType || type instanceof LongType;
    return isPlain && value != null ? value.toString() : write(value, type);
  }

  private static String time(Object value, DataType type) throws NotWritable {
    if (type instanceof DateType) {
      LocalDate date = LocalDate.ofEpochDay((Integer) value);
      requireFourDigits(date.getYear());
      return "DATE '" + date + "'";
    }
    if (type instanceof TimestampType) {
      return "TIMESTAMP '" + micros((Long) value) + "+00:00'";
    }
    if (type instanceof TimestampNTZType) {
      return "TIMESTAMP_NTZ '" + micros((Long) value) + "'";
    }
    if (type instanceof YearMonthIntervalType) {
      return "INTERVAL '" + value + "' MONTH";
    }
    if (type instanceof DayTimeIntervalType) {
      return "INTERVAL '" + value + "' MICROSECOND";
    }
    throw new NotWritable();
  }

  private static String micros(long micros) throws NotWritable {
    Instant instant = Instant.EPOCH.plus(micros, ChronoUnit.MICROS);
    LocalDateTime time = LocalDateTime.ofInstant(instant, ZoneOffset.UTC);
    requireFourDigits(time.getYear());
    return SECONDS_AND_MICROS.format(time);
  }

  private static void requireFourDigits(int year) throws NotWritable {
    if (year < 1 || year > LAST_YEAR) {
      throw new NotWritable();
    }
  }

  /** A value, or a part of an expression, has no certain text. */
  public static final class NotWritable extends Exception {
    private static final long serialVersionUID = 1L;

    public NotWritable() {
      super(null, null, false, false);
    }
  }
}
