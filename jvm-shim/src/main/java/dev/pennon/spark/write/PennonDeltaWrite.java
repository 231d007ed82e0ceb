package dev.pennon.spark.write;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.types.StructType;

/** A planned change of single rows: those that go by their ids, new ones grouped by partition. */
final class PennonDeltaWrite extends PennonWrite implements DeltaWrite {
  private final StructType rowId;

  PennonDeltaWrite(WritePlan plan, StructType rowId) {
    super(plan);
    this.rowId = rowId;
  }

  @Override
  public DeltaBatchWrite toBatch() {
    return reporting(new PennonDeltaBatchWrite(plan, rowId));
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return WriteMetrics.ofRowChanges();
  }
}
