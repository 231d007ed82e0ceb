package dev.pennon.spark.write;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes the writers of one row-level change on the executors. */
record ArrowDeltaWriters(String write, StructType schema, StructType rowId)
    implements DeltaWriterFactory {
  private static final long serialVersionUID = 1L;

  @Override
  public DeltaWriter<InternalRow> createWriter(int partitionId, long taskId) {
    return new ArrowDeltaWriter(write, schema, rowId);
  }

  /** The token may hold storage options: it is never shown. */
  @Override
  public String toString() {
    return "ArrowDeltaWriters" + schema.simpleString();
  }
}
