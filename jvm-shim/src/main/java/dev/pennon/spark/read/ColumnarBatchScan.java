package dev.pennon.spark.read;

import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;

/** A scan that is its own batch, whose rows come in columns. */
public interface ColumnarBatchScan extends Scan, Batch {
  @Override
  default Batch toBatch() {
    return this;
  }

  @Override
  default ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }
}
