package dev.pennon.spark.tasks;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.replies.Replies;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A number on Spark's web page of a query: what its tasks count, or the driver does. */
public enum Metric {
  ARROW_BYTES("arrowBytesRead", "bytes of Arrow data from the worker"),
  PARTITIONS_READ("partitionsRead", "partitions read"),
  PARTITIONS_SKIPPED("partitionsSkipped", "partitions skipped"),
  PLANNING("planningMillis", "time to plan the scan (ms)"),
  CPU("workerCpuMillis", "processor time of the workers (ms)"),
  PEAK("workerPeakBytes", "peak memory of a worker (bytes)"),
  ROWS_SCANNED("rowsScanned", "rows scanned by the workers"),
  BYTES_SCANNED("bytesScanned", "bytes scanned by the workers"),
  COMPUTE("workerComputeMillis", "time of the workers' operators (ms)"),
  SPILLED("workerSpilledBytes", "bytes spilled by the workers"),
  ROWS_WRITTEN("recordsWritten", "number of rows sent to the worker"),
  PARTITIONS_WRITTEN("partitionsWritten", "number of partitions written"),
  FILES_WRITTEN("filesWritten", "number of files written"),
  BYTES_WRITTEN("bytesWritten", "number of bytes written"),
  ROWS_DELETED("rowsDeleted", "number of rows deleted or replaced");

  /** Of a part of a query that workers compute; partitions are counted after runtime filters. */
  public static final Set<Metric> OF_FRAGMENT = EnumSet.range(ARROW_BYTES, SPILLED);

  public static final Set<Metric> OF_SCAN = EnumSet.range(ARROW_BYTES, BYTES_SCANNED);

  public static final Set<Metric> OF_ROW_CHANGES = EnumSet.range(ROWS_WRITTEN, ROWS_DELETED);

  public static final Set<Metric> OF_WRITE = EnumSet.range(ROWS_WRITTEN, BYTES_WRITTEN);

  private final String key;
  private final String description;

  Metric(String key, String description) {
    this.key = key;
    this.description = description;
  }

  /** What Spark's page is to show. */
  public static CustomMetric[] shown(Set<Metric> metrics) {
    return metrics.stream()
        .map(metric -> metric == PEAK ? new Peak() : new Total(metric.key, metric.description))
        .toArray(CustomMetric[]::new);
  }

  public CustomTaskMetric of(long value) {
    return new Value(key, value);
  }

  public static CustomTaskMetric[] ofPlanning(long partitionsRead, Planning planning) {
    long skipped = Math.max(0, planning.partitionsTotal() - partitionsRead);
    return new CustomTaskMetric[] {
      PARTITIONS_READ.of(partitionsRead),
      PARTITIONS_SKIPPED.of(skipped),
      PLANNING.of(planning.millis())
    };
  }

  /**
   * Of a task that reads.
   *
   * @param arrowBytes what came over the socket
   * @param streamEnd what the worker sent behind the rows; null before their end
   */
  static CustomTaskMetric[] ofTask(long arrowBytes, JsonNode streamEnd) {
    if (streamEnd == null) {
      return new CustomTaskMetric[] {ARROW_BYTES.of(arrowBytes)};
    }
    StreamEnd end = Replies.read(streamEnd, StreamEnd.class);
    return new CustomTaskMetric[] {
      ARROW_BYTES.of(arrowBytes),
      CPU.of(end.cpuMillis()),
      COMPUTE.of(end.computeMillis()),
      PEAK.of(end.peakBytes()),
      ROWS_SCANNED.of(end.rowsScanned()),
      BYTES_SCANNED.of(end.bytesScanned()),
      SPILLED.of(end.spilledBytes())
    };
  }

  /** All partitions of a table's snapshot, and the time that the worker took to choose. */
  public record Planning(long partitionsTotal, long millis) {}

  private record StreamEnd(
      long cpuMillis, long computeMillis, long peakBytes,
      long rowsScanned, long bytesScanned, long spilledBytes) {}

  private record Value(String name, long value) implements CustomTaskMetric {}

  /** A metric whose values are added up. Spark's page makes another one of the class, by no name. */
  public static class Total extends CustomSumMetric {
    private final String name;
    private final String description;

    public Total() {
      this("", "");
    }

    Total(String name, String description) {
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
  }

  /** The most memory that a worker had; tasks of one worker are not added up. */
  public static final class Peak extends Total {
    public Peak() {
      super(PEAK.key, PEAK.description);
    }

    @Override
    public String aggregateTaskMetrics(long[] taskMetrics) {
      return String.valueOf(Arrays.stream(taskMetrics).max().orElse(0));
    }
  }
}
