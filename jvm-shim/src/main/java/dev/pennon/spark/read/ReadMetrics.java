package dev.pennon.spark.read;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a scan counts, shown in Spark's web page of the query. */
final class ReadMetrics {
  private static final String ARROW_BYTES = "arrowBytesRead";

  private ReadMetrics() {}

  static CustomMetric[] all() {
    return new CustomMetric[] {new ArrowBytesRead()};
  }

  static CustomTaskMetric[] values(long arrowBytes) {
    return new CustomTaskMetric[] {new Count(ARROW_BYTES, arrowBytes)};
  }

  /** Bytes that came over the worker's socket; Spark makes an instance by name. */
  public static final class ArrowBytesRead extends CustomSumMetric {
    @Override
    public String name() {
      return ARROW_BYTES;
    }

    @Override
    public String description() {
      return "bytes of Arrow data from the worker";
    }
  }

  private record Count(String name, long value) implements CustomTaskMetric {}
}
