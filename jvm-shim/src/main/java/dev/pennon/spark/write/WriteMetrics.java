package dev.pennon.spark.write;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a write counts, shown in Spark's web page of the query. */
final class WriteMetrics {
  private static final String ROWS = "rowsWritten";
  private static final String DELETED = "rowsDeleted";

  private WriteMetrics() {}

  static CustomMetric[] all() {
    return new CustomMetric[] {new RowsWritten()};
  }

  static CustomMetric[] ofRowChanges() {
    return new CustomMetric[] {new RowsWritten(), new RowsDeleted()};
  }

  static CustomTaskMetric[] values(long rows) {
    return new CustomTaskMetric[] {new Count(ROWS, rows)};
  }

  static CustomTaskMetric[] values(long rows, long deleted) {
    return new CustomTaskMetric[] {new Count(ROWS, rows), new Count(DELETED, deleted)};
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

  /** Rows that go, those that an update replaces among them; Spark makes an instance by name. */
  public static final class RowsDeleted extends CustomSumMetric {
    @Override
    public String name() {
      return DELETED;
    }

    @Override
    public String description() {
      return "number of rows deleted or replaced";
    }
  }

  private record Count(String name, long value) implements CustomTaskMetric {}
}
