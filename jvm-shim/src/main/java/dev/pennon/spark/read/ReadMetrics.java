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

  /** Of a scan of one table. */
  static CustomMetric[] ofScan() {
    return new CustomMetric[] {
      new ArrowBytesRead(),
      new PartitionsRead(),
      new PartitionsSkipped(),
      new PlanningMillis(),
      new WorkerCpuMillis(),
      new WorkerPeakBytes(),
      new RowsScanned(),
      new BytesScanned()
    };
  }

  /** Of a part of a query that workers compute. */
  static CustomMetric[] ofFragment() {
    CustomMetric[] scan = ofScan();
    CustomMetric[] all = Arrays.copyOf(scan, scan.length + 1);
    all[scan.length] = new WorkerSpilledBytes();
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
   * @param told what the worker told behind the rows; null before their end
   */
  static CustomTaskMetric[] values(long arrowBytes, JsonNode told) {
    SumMetric.Count bytes = new SumMetric.Count(ARROW_BYTES, arrowBytes);
    if (told == null) {
      return new CustomTaskMetric[] {bytes};
    }
    StreamEnd end = Replies.read(told, StreamEnd.class);
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

  /** The tasks' shares of the workers' processor time. */
  public static final class WorkerCpuMillis extends SumMetric {
    public WorkerCpuMillis() {
      super(CPU, "processor time of the workers (ms)");
    }
  }

  /** Rows of the leaves before any filter. */
  public static final class RowsScanned extends SumMetric {
    public RowsScanned() {
      super(ROWS, "rows scanned by the workers");
    }
  }

  /** Bytes that were read of the leaves. */
  public static final class BytesScanned extends SumMetric {
    public BytesScanned() {
      super(BYTES, "bytes scanned by the workers");
    }
  }

  /** Bytes that the workers wrote to temporary files for want of memory. */
  public static final class WorkerSpilledBytes extends SumMetric {
    public WorkerSpilledBytes() {
      super(SPILLED, "bytes spilled by the workers");
    }
  }

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
