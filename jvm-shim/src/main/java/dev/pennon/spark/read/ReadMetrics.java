package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.catalog.Replies;
import java.util.Arrays;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a scan counts, shown in Spark's web page of the query. */
final class ReadMetrics {
  private static final String ARROW_BYTES = "arrowBytesRead";
  private static final String PARTITIONS = "partitionsRead";
  private static final String SKIPPED = "partitionsSkipped";
  private static final String PLANNING = "planningMillis";
  private static final String CPU = "workerCpuMillis";
  private static final String PEAK = "workerPeakBytes";
  private static final String ROWS = "rowsScanned";
  private static final String BYTES = "bytesScanned";
  private static final String SPILLED = "workerSpilledBytes";

  private ReadMetrics() {}

  /** Of a scan of one table; partitions are counted after runtime filters, rows before any. */
  static CustomMetric[] ofScan() {
    return new CustomMetric[] {
      new SumMetric(ARROW_BYTES, "bytes of Arrow data from the worker"),
      new SumMetric(PARTITIONS, "partitions read"),
      new SumMetric(SKIPPED, "partitions skipped"),
      new SumMetric(PLANNING, "time to plan the scan (ms)"),
      new SumMetric(CPU, "processor time of the workers (ms)"),
      new WorkerPeakBytes(),
      new SumMetric(ROWS, "rows scanned by the workers"),
      new SumMetric(BYTES, "bytes scanned by the workers")
    };
  }

  /** Of a part of a query that workers compute. */
  static CustomMetric[] ofFragment() {
    CustomMetric[] scan = ofScan();
    CustomMetric[] all = Arrays.copyOf(scan, scan.length + 1);
    all[scan.length] = new SumMetric(SPILLED, "bytes spilled by the workers");
    return all;
  }

  static CustomTaskMetric[] ofPlanning(long partitionsRead, ScanPlan.Planning planning) {
    long skipped = Math.max(0, planning.partitionsTotal() - partitionsRead);
    return new CustomTaskMetric[] {
      new SumMetric.Count(PARTITIONS, partitionsRead),
      new SumMetric.Count(SKIPPED, skipped),
      new SumMetric.Count(PLANNING, planning.millis())
    };
  }

  /**
   * Of one task.
   *
   * @param arrowBytes what came over the socket
   * @param streamEnd what the worker sent behind the rows; null before their end
   */
  static CustomTaskMetric[] values(long arrowBytes, JsonNode streamEnd) {
    SumMetric.Count bytes = new SumMetric.Count(ARROW_BYTES, arrowBytes);
    if (streamEnd == null) {
      return new CustomTaskMetric[] {bytes};
    }
    StreamEnd end = Replies.read(streamEnd, StreamEnd.class);
    return new CustomTaskMetric[] {
      bytes,
      new SumMetric.Count(CPU, end.cpuMillis()),
      new SumMetric.Count(PEAK, end.peakBytes()),
      new SumMetric.Count(ROWS, end.rowsScanned()),
      new SumMetric.Count(BYTES, end.bytesScanned()),
      new SumMetric.Count(SPILLED, end.spilledBytes())
    };
  }

  private record StreamEnd(
      long cpuMillis, long peakBytes, long rowsScanned, long bytesScanned, long spilledBytes) {}

  /** The most memory that a worker had; tasks of one worker are not added up. */
  public static final class WorkerPeakBytes implements CustomMetric {
    @Override
    public String name() {
      return PEAK;
    }

    @Override
    public String description() {
      return "peak memory of a worker (bytes)";
    }

    @Override
    public String aggregateTaskMetrics(long[] taskMetrics) {
      return String.valueOf(Arrays.stream(taskMetrics).max().orElse(0));
    }
  }
}
