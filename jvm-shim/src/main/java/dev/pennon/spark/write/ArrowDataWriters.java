package dev.pennon.spark.write;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes the writers of one write on the executors. */
record ArrowDataWriters(String write, StructType schema)
    implements DataWriterFactory, StreamingDataWriterFactory {
  private static final long serialVersionUID = 1L;

  @Override
  public DataWriter<InternalRow> createWriter(int partitionId, long taskId) {
    return ArrowDataWriter.ofRows(write, schema);
  }

  @Override
  public DataWriter<InternalRow> createWriter(int partitionId, long taskId, long epochId) {
    return createWriter(partitionId, taskId);
  }

  /** The token may hold storage options: it is never shown. */
  @Override
  public String toString() {
    return "ArrowDataWriters" + schema.simpleString();
  }
}
