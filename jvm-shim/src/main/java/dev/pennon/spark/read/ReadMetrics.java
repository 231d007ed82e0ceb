package dev.pennon.spark.read;

import org.apache.spark.sql.connector.metric.CustomMetric;
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
      new SumMetric.Count(PARTITIONS, partitionsRead),
      new SumMetric.Count(SKIPPED, skipped),
      new SumMetric.Count(PLANNING, planning.millis())
    };
  }

  static CustomTaskMetric[] values(long arrowBytes) {
    return new CustomTaskMetric[] {new SumMetric.Count(ARROW_BYTES, arrowBytes)};
  }

  /** Bytes that came over the worker's socket. */
  public static final class ArrowBytesRead extends SumMetric {
    public ArrowBytesRead() {
      super(ARROW_BYTES, "bytes of Arrow data from the worker");
    }
  }

  /** Partitions that the query reads, after runtime filters. */
  public static final class PartitionsRead extends SumMetric {
    public PartitionsRead() {
      super(PARTITIONS, "partitions read");
    }
  }

  /** Partitions of the table that it need not read. */
  public static final class PartitionsSkipped extends SumMetric {
    public PartitionsSkipped() {
      super(SKIPPED, "partitions skipped");
    }
  }

  /** How long the worker took to plan the scan. */
  public static final class PlanningMillis extends SumMetric {
    public PlanningMillis() {
      super(PLANNING, "time to plan the scan (ms)");
    }
  }
}
