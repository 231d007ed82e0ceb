package dev.pennon.spark.read;

import dev.pennon.spark.worker.WorkerFailure;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The Arrow table of splits that follows a reply: object_id, split, key_0, … */
final class SplitTable {
  private SplitTable() {}

  static List<PennonSplit> read(ReadableByteChannel channel) {
    List<PennonSplit> splits = new ArrayList<>();
    forEachBatch(channel, root -> append(root, splits));
    return splits;
  }

  /** Reads the table that follows a reply, to its end. */
  static void forEachBatch(ReadableByteChannel channel, Consumer<VectorSchemaRoot> reader) {
    try (BufferAllocator allocator =
            ArrowUtils.rootAllocator().newChildAllocator("pennon plan", 0, Long.MAX_VALUE);
        ArrowStreamReader stream = new ArrowStreamReader(channel, allocator)) {
      VectorSchemaRoot root = stream.getVectorSchemaRoot();
      while (stream.loadNextBatch()) {
        reader.accept(root);
      }
      drain(channel);
    } catch (IOException e) {
      throw broken(e);
    }
  }

  private static void append(VectorSchemaRoot root, List<PennonSplit> splits) {
    ArrowColumnVector objectIds = new ArrowColumnVector(root.getVector("object_id"));
    ArrowColumnVector tokens = new ArrowColumnVector(root.getVector("split"));
    ColumnVector[] keys =
        root.getFieldVectors().stream()
            .filter(vector -> vector.getName().startsWith("key_"))
            .map(SplitTable::column)
            .toArray(ColumnVector[]::new);
    ColumnarBatch keyRows = new ColumnarBatch(keys, root.getRowCount());
    for (int row = 0; row < root.getRowCount(); row++) {
      splits.add(
          new PennonSplit(
              objectIds.getUTF8String(row).toString(),
              tokens.getUTF8String(row).toString(),
              keyRows.getRow(row).copy()));
    }
  }

  private static ColumnVector column(FieldVector vector) {
    return new ArrowColumnVector(vector);
  }

  /** Reads up to the end frame behind Arrow's own end, which completes the exchange. */
  static void drain(ReadableByteChannel channel) throws IOException {
    ByteBuffer rest = ByteBuffer.allocate(64);
    while (channel.read(rest) >= 0) {
      rest.clear();
    }
  }

  static WorkerFailure broken(IOException cause) {
    String message =
        "[WORKER_PROTOCOL] Cannot read an Arrow stream from the Pennon worker: "
            + cause.getMessage()
            + ". This is a bug of Pennon; the log of the worker says more.";
    return new WorkerFailure("WORKER_PROTOCOL", message, Map.of(), "XX000", cause);
  }
}
