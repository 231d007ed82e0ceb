package dev.pennon.spark.read;

import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import java.util.Locale;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** SQL literals that say their type, of values in Spark's internal form. */
final class TypedLiteral {
  private static final DateTimeFormatter SECONDS_AND_MICROS =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSS", Locale.ROOT);
  private static final int LAST_YEAR = 9999;

  private TypedLiteral() {}

  static String write(Object value, DataType type) throws PredicateText.NotWritable {
    if (value == null) {
      return "NULL";
    }
    if (type instanceof BooleanType) {
      return (Boolean) value ? "TRUE" : "FALSE";
    }
    if (type instanceof ByteType
        || type instanceof ShortType
        || type instanceof IntegerType
        || type instanceof LongType) {
      return "CAST(" + value + " AS " + type.sql() + ")";
    }
    if (type instanceof FloatType || type instanceof DoubleType) {
      return "CAST('" + value + "' AS " + type.sql() + ")";
    }
    if (type instanceof DecimalType) {
      String digits = ((Decimal) value).toJavaBigDecimal().toPlainString();
      return "CAST('" + digits + "' AS " + type.sql() + ")";
    }
    if (type instanceof StringType) {
      return "'" + value.toString().replace("\\", "\\\\").replace("'", "\\'") + "'";
    }
    if (type instanceof BinaryType) {
      return "X'" + HexFormat.of().withUpperCase().formatHex((byte[]) value) + "'";
    }
    return time(value, type);
  }

  private static String time(Object value, DataType type) throws PredicateText.NotWritable {
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
    throw new PredicateText.NotWritable();
  }

  private static String micros(long micros) throws PredicateText.NotWritable {
    Instant instant = Instant.EPOCH.plus(micros, ChronoUnit.MICROS);
    LocalDateTime time = LocalDateTime.ofInstant(instant, ZoneOffset.UTC);
    requireFourDigits(time.getYear());
    return SECONDS_AND_MICROS.format(time);
  }

  private static void requireFourDigits(int year) throws PredicateText.NotWritable {
    if (year < 1 || year > LAST_YEAR) {
      throw new PredicateText.NotWritable();
    }
  }
}
