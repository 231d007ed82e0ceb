package dev.pennon.spark.write;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a write counts, shown in Spark's web page of the query. */
final class WriteMetrics {
  private static final String ROWS = "rowsWritten";

  private WriteMetrics() {}

  static CustomMetric[] all() {
    return new CustomMetric[] {new RowsWritten()};
  }

  static CustomTaskMetric[] values(long rows) {
    return new CustomTaskMetric[] {new Count(ROWS, rows)};
  }

  /** Rows sent to the worker; Spark makes an instance by name. */
  public static final class RowsWritten extends CustomSumMetric {
    @Override
    public String name() {
      return ROWS;
    }

    @Override
    public String description() {
      return "number of rows sent to the worker";
    }
  }

  private record Count(String name, long value) implements CustomTaskMetric {}
}
