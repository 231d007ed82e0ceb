package dev.pennon.spark.read;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A number on Spark's page of a query: what its tasks or the driver count, added up. */
public final class SumMetric extends CustomSumMetric {
  private final String name;
  private final String description;

  public SumMetric(String name, String description) {
    this.name = name;
    this.description = description;
  }

  /** For Spark's page alone, which adds up values by the class of their metric. */
  public SumMetric() {
    this("", "");
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String description() {
    return description;
  }

  /** A value of the metric of that name. */
  public record Count(String name, long value) implements CustomTaskMetric {}
}
