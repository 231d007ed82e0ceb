package dev.pennon.spark.write;

import dev.pennon.spark.worker.SecretText;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.StructType;

/**
 * Makes the writers of one write on the executors.
 *
 * @param rowId what rows that go are named by; null where none goes
 */
record ArrowDataWriters(SecretText write, StructType schema, StructType rowId)
    implements DeltaWriterFactory, StreamingDataWriterFactory {
  private static final long serialVersionUID = 3L;

  @Override
  public DeltaWriter<InternalRow> createWriter(int partitionId, long taskId) {
    return new ArrowDataWriter(write, schema, rowId);
  }

  @Override
  public DataWriter<InternalRow> createWriter(int partitionId, long taskId, long epochId) {
    return createWriter(partitionId, taskId);
  }
}
