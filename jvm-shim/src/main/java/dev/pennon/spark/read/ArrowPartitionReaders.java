package dev.pennon.spark.read;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Makes the readers of one scan on the executors; holds what all its splits share.
 *
 * @param scan the worker's token of the scan
 * @param schema the columns that the worker sends
 * @param isDerived whether the split's key follows them as a constant column
 */
record ArrowPartitionReaders(String scan, StructType schema, boolean isDerived)
    implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new ArrowPartitionReader(scan, (PennonSplit) partition, schema, isDerived);
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("Pennon reads columnar batches only");
  }

  /** The token may hold storage options: it is never shown. */
  @Override
  public String toString() {
    return "ArrowPartitionReaders" + schema.simpleString();
  }
}
