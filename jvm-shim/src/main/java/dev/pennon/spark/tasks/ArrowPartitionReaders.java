package dev.pennon.spark.tasks;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Makes the readers of one scan on the executors; holds what all its splits share.
 *
 * @param source what the worker reads the splits of
 * @param schema the columns that the worker sends
 * @param isDerived whether the split's key follows them as a constant column
 */
public record ArrowPartitionReaders(Source source, StructType schema, boolean isDerived)
    implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  /**
   * The operation that reads a split.
   *
   * @param kind what it is a split of
   * @param token the worker's token of that
   * @param isOrdered whether rows are to come in the order that the scan reports
   * @param rowKeys what rows are wanted, as the worker reads it; null for all
   * @param arithmetic where the worker computes what can fail
   */
  public record Source(
      String operation,
      String kind,
      SecretText token,
      boolean isOrdered,
      String rowKeys,
      ArithmeticPlaces arithmetic)
      implements Serializable {
    private static final long serialVersionUID = 5L;

    public static Source scan(SecretText token, boolean isOrdered, String rowKeys) {
      return new Source("read", "scan", token, isOrdered, rowKeys, ArithmeticPlaces.NONE);
    }

    public static Source fragment(SecretText token, ArithmeticPlaces arithmetic) {
      return new Source("run_fragment", "fragment", token, false, null, arithmetic);
    }

    public static Source metadata(SecretText token) {
      return new Source("read_metadata", "table", token, false, null, ArithmeticPlaces.NONE);
    }

    ObjectNode request(PennonSplit split) {
      ObjectNode request = Messages.request(operation).put(kind, token.text());
      request.put("split", split.token());
      return kind.equals("scan")
          ? request.put("ordered", isOrdered).put("row_keys", rowKeys)
          : request;
    }
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new ArrowPartitionReader(source, (PennonSplit) partition, schema, isDerived);
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("Pennon reads columnar batches only");
  }
}
