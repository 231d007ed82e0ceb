package dev.pennon.spark.functions;

import java.time.LocalDate;
import java.util.Locale;

/** Year, month of the year, day of the month and hour of the day in UTC. */
enum CalendarField implements TimePart {
  YEAR,
  MONTH,
  DAY,
  HOUR;

  @Override
  public String functionName() {
    return name().toLowerCase(Locale.ROOT);
  }

  @Override
  public boolean isOfDates() {
    return this != HOUR;
  }

  @Override
  public int ofMicros(long micros) {
    if (this == HOUR) {
      return (int) (Math.floorMod(micros, EpochUnit.MICROS_PER_DAY) / EpochUnit.MICROS_PER_HOUR);
    }
    return ofDays(Math.toIntExact(Math.floorDiv(micros, EpochUnit.MICROS_PER_DAY)));
  }

  @Override
  public int ofDays(int days) {
    LocalDate date = LocalDate.ofEpochDay(days);
    return switch (this) {
      case YEAR -> date.getYear();
      case MONTH -> date.getMonthValue();
      case DAY -> date.getDayOfMonth();
      case HOUR -> throw new IllegalArgumentException("a date has no hour");
    };
  }
}
