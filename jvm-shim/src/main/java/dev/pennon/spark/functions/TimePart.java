package dev.pennon.spark.functions;

import java.io.Serializable;

/** What a function takes from a date or a timestamp, in UTC. */
interface TimePart extends Serializable {
  String functionName();

  int ofMicros(long micros);

  int ofDays(int days);

  /** Whether a date has it, too. */
  boolean isOfDates();
}
