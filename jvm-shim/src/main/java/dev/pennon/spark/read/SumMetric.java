package dev.pennon.spark.read;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What tasks or the driver count for Spark's page of a query; Spark makes instances by name. */
public abstract class SumMetric extends CustomSumMetric {
  private final String name;
  private final String description;

  protected SumMetric(String name, String description) {
    this.name = name;
    this.description = description;
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
