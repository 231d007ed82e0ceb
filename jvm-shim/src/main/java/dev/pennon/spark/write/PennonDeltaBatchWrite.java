package dev.pennon.spark.write;

import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.types.StructType;

/** Turns the row changes of all tasks into one commit, or into nothing. */
final class PennonDeltaBatchWrite extends PennonBatchWrite implements DeltaBatchWrite {
  private final StructType rowId;

  PennonDeltaBatchWrite(WritePlan plan, StructType rowId) {
    super(plan);
    this.rowId = rowId;
  }

  @Override
  public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
    return new ArrowDeltaWriters(plan.reply().write(), plan.schema(), rowId);
  }
}
