package dev.pennon.spark.functions;

import dev.pennon.spark.failures.WorkerFailure;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.Locale;

/** What a function takes from a date or a timestamp in UTC: units since 1970, fields of a calendar. */
enum TimePart {
  // Units, from coarse to fine.
  YEARS, MONTHS, DAYS, HOURS,
  YEAR, MONTH, DAY, HOUR;

  private static final long MICROS_PER_HOUR = 3_600_000_000L;
  private static final long MICROS_PER_DAY = 24 * MICROS_PER_HOUR;
  private static final int EPOCH_YEAR = 1970;
  private static final int MONTHS_PER_YEAR = 12;
  private static final int HOURS_PER_DAY = 24;

  String functionName() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Whether a date has it, too. */
  boolean isOfDates() {
    return this != HOURS && this != HOUR;
  }

  int ofMicros(long micros) {
    return switch (this) {
      case HOURS -> counted(Math.floorDiv(micros, MICROS_PER_HOUR));
      case HOUR -> (int) (Math.floorMod(micros, MICROS_PER_DAY) / MICROS_PER_HOUR);
      default -> ofDays(Math.toIntExact(Math.floorDiv(micros, MICROS_PER_DAY)));
    };
  }

  /** Hours are the only unit of which times have more than an int counts. */
  private static int counted(long hours) {
    if (hours != (int) hours) {
      String time = Instant.EPOCH.plus(hours, ChronoUnit.HOURS).toString();
      throw WorkerFailure.of("HOURS_OUT_OF_RANGE", "value", time, "hours", "" + hours).raiseInTask();
    }
    return (int) hours;
  }

  int ofDays(int days) {
    if (this == DAYS) {
      return days;
    }
    LocalDate date = LocalDate.ofEpochDay(days);
    return switch (this) {
      case YEARS -> date.getYear() - EPOCH_YEAR;
      case MONTHS -> (date.getYear() - EPOCH_YEAR) * MONTHS_PER_YEAR + date.getMonthValue() - 1;
      case YEAR -> date.getYear();
      case MONTH -> date.getMonthValue();
      case DAY -> date.getDayOfMonth();
      default -> throw new IllegalArgumentException("a date has no " + functionName());
    };
  }

  /** Whether both are units and this one is the coarser; fields of a calendar have no coarser ones. */
  boolean isCoarserThan(TimePart other) {
    return ordinal() < other.ordinal() && other.ordinal() <= HOURS.ordinal();
  }

  /** The value of this unit from the value of a finer one. */
  int coarsened(int value, TimePart finer) {
    return switch (finer) {
      case HOURS -> ofDays(Math.floorDiv(value, HOURS_PER_DAY));
      case DAYS -> ofDays(value);
      case MONTHS -> Math.floorDiv(value, MONTHS_PER_YEAR);
      default -> throw new IllegalArgumentException(finer + " is not finer than " + this);
    };
  }
}
