package dev.pennon.spark.functions;

import java.time.LocalDate;
import java.util.Locale;

/** Years, months, days and hours since 1970 in UTC, from coarse to fine. */
enum EpochUnit implements TimePart {
  YEARS,
  MONTHS,
  DAYS,
  HOURS;

  static final long MICROS_PER_HOUR = 3_600_000_000L;
  static final long MICROS_PER_DAY = 24 * MICROS_PER_HOUR;
  private static final int EPOCH_YEAR = 1970;
  private static final int MONTHS_PER_YEAR = 12;
  private static final int HOURS_PER_DAY = 24;

  @Override
  public String functionName() {
    return name().toLowerCase(Locale.ROOT);
  }

  @Override
  public boolean isOfDates() {
    return this != HOURS;
  }

  @Override
  public int ofMicros(long micros) {
    return this == HOURS
        ? Math.toIntExact(Math.floorDiv(micros, MICROS_PER_HOUR))
        : ofDays(Math.toIntExact(Math.floorDiv(micros, MICROS_PER_DAY)));
  }

  @Override
  public int ofDays(int days) {
    return coarsened(days, DAYS);
  }

  /** The value of this unit from the value of a finer one. */
  int coarsened(int value, EpochUnit finer) {
    if (this == finer) {
      return value;
    }
    return switch (finer) {
      case HOURS -> coarsened(Math.floorDiv(value, HOURS_PER_DAY), DAYS);
      case DAYS -> coarsened(monthsOfDays(value), MONTHS);
      case MONTHS -> coarsened(Math.floorDiv(value, MONTHS_PER_YEAR), YEARS);
      case YEARS -> throw new IllegalArgumentException(finer + " is not finer than " + this);
    };
  }

  private static int monthsOfDays(int days) {
    LocalDate date = LocalDate.ofEpochDay(days);
    return (date.getYear() - EPOCH_YEAR) * MONTHS_PER_YEAR + date.getMonthValue() - 1;
  }
}
