package dev.pennon.spark.write;

import dev.pennon.spark.tasks.Metric;
import dev.pennon.spark.worker.SecretText;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;

/**
 * Streams the row changes of one task to the worker: new rows one way, ids of deleted rows another.
 *
 * <p>An update is a delete and an insert, so a row whose partition changes moves.
 */
final class ArrowDataWriter implements DeltaWriter<InternalRow> {
  private final ArrowRowStream inserted;
  private final ArrowRowStream deleted;

  ArrowDataWriter(SecretText write, StructType schema, StructType rowId) {
    inserted = new ArrowRowStream("write", write, schema);
    deleted = new ArrowRowStream("write_deletes", write, rowId);
  }

  @Override
  public void delete(InternalRow metadata, InternalRow id) throws IOException {
    deleted.write(id);
  }

  @Override
  public void insert(InternalRow row) throws IOException {
    inserted.write(row);
  }

  @Override
  public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
    deleted.write(id);
    inserted.write(row);
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    return new StagedRows(inserted.finish(), deleted.finish());
  }

  @Override
  public void abort() {
    inserted.abort();
    deleted.abort();
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return new CustomTaskMetric[] {
      Metric.ROWS_WRITTEN.of(inserted.rowsWritten()), Metric.ROWS_DELETED.of(deleted.rowsWritten())
    };
  }

  @Override
  public void close() {
    try (deleted) {
      inserted.close();
    }
  }
}
