package dev.pennon.spark.read;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a scan counts, shown in Spark's web page of the query. */
final class ReadMetrics {
  private static final String ARROW_BYTES = "arrowBytesRead";
  private static final String PARTITIONS = "partitionsRead";
  private static final String SKIPPED = "partitionsSkipped";
  private static final String PLANNING = "planningMillis";

  private ReadMetrics() {}

  static CustomMetric[] all() {
    return new CustomMetric[] {new ArrowBytesRead()};
  }

  /** Of a scan of one table, besides the others. */
  static CustomMetric[] ofScan() {
    return new CustomMetric[] {
      new ArrowBytesRead(), new PartitionsRead(), new PartitionsSkipped(), new PlanningMillis()
    };
  }

  static CustomTaskMetric[] ofPlanning(long partitionsRead, ScanPlan.Planning planning) {
    long skipped = Math.max(0, planning.partitionsTotal() - partitionsRead);
    return new CustomTaskMetric[] {
      new Count(PARTITIONS, partitionsRead),
      new Count(SKIPPED, skipped),
      new Count(PLANNING, planning.millis())
    };
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

  /** Partitions that the query reads, after runtime filters; Spark makes an instance by name. */
  public static final class PartitionsRead extends CustomSumMetric {
    @Override
    public String name() {
      return PARTITIONS;
    }

    @Override
    public String description() {
      return "partitions read";
    }
  }

  /** Partitions of the table that it need not read; Spark makes an instance by name. */
  public static final class PartitionsSkipped extends CustomSumMetric {
    @Override
    public String name() {
      return SKIPPED;
    }

    @Override
    public String description() {
      return "partitions skipped";
    }
  }

  /** How long the worker took to plan the scan; Spark makes an instance by name. */
  public static final class PlanningMillis extends CustomSumMetric {
    @Override
    public String name() {
      return PLANNING;
    }

    @Override
    public String description() {
      return "time to plan the scan (ms)";
    }
  }

  private record Count(String name, long value) implements CustomTaskMetric {}
}
