package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.catalog.Replies;
import dev.pennon.spark.read.SumMetric;
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
      new RowsWritten(), new PartitionsWritten(), new FilesWritten(), new BytesWritten()
    };
  }

  static CustomMetric[] ofRowChanges() {
    return new CustomMetric[] {
      new RowsWritten(),
      new RowsDeleted(),
      new PartitionsWritten(),
      new FilesWritten(),
      new BytesWritten()
    };
  }

  static CustomTaskMetric[] values(long rows) {
    return new CustomTaskMetric[] {new SumMetric.Count(ROWS, rows)};
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

  /** Rows sent to the worker. */
  public static final class RowsWritten extends SumMetric {
    public RowsWritten() {
      super(ROWS, "number of rows sent to the worker");
    }
  }

  /** Rows that go, those that an update replaces among them. */
  public static final class RowsDeleted extends SumMetric {
    public RowsDeleted() {
      super(DELETED, "number of rows deleted or replaced");
    }
  }

  /** Partitions with new rows. */
  public static final class PartitionsWritten extends SumMetric {
    public PartitionsWritten() {
      super(PARTITIONS, "number of partitions written");
    }
  }

  /** New files of rows. */
  public static final class FilesWritten extends SumMetric {
    public FilesWritten() {
      super(FILES, "number of files written");
    }
  }

  /** Their bytes. */
  public static final class BytesWritten extends SumMetric {
    public BytesWritten() {
      super(BYTES, "number of bytes written");
    }
  }
}
