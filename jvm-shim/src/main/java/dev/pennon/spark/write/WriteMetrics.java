package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.catalog.Replies;
import dev.pennon.spark.read.SumMetric;
import java.util.Arrays;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a write counts, shown in Spark's web page of the query. */
final class WriteMetrics {
  private static final String ROWS = "rowsWritten";
  private static final String DELETED = "rowsDeleted";
  private static final String PARTITIONS = "partitionsWritten";
  private static final String FILES = "filesWritten";
  private static final String BYTES = "bytesWritten";

  private WriteMetrics() {}

  static CustomMetric[] all() {
    return new CustomMetric[] {
      new SumMetric(ROWS, "number of rows sent to the worker"),
      new SumMetric(PARTITIONS, "number of partitions written"),
      new SumMetric(FILES, "number of files written"),
      new SumMetric(BYTES, "number of bytes written")
    };
  }

  static CustomMetric[] ofRowChanges() {
    CustomMetric[] all = Arrays.copyOf(all(), all().length + 1);
    all[all.length - 1] = new SumMetric(DELETED, "number of rows deleted or replaced");
    return all;
  }

  static CustomTaskMetric[] values(long rows, long deleted) {
    return new CustomTaskMetric[] {new SumMetric.Count(ROWS, rows), new SumMetric.Count(DELETED, deleted)};
  }

  /** What a commit says of the files that it made visible. */
  static CustomTaskMetric[] ofCommit(JsonNode reply) {
    CommitWriteReply commit = Replies.read(reply, CommitWriteReply.class);
    return new CustomTaskMetric[] {
      new SumMetric.Count(PARTITIONS, commit.partitions()),
      new SumMetric.Count(FILES, commit.files()),
      new SumMetric.Count(BYTES, commit.bytes())
    };
  }

  private record CommitWriteReply(long partitions, long files, long bytes) {}
}
