package dev.pennon.spark.read;

import dev.pennon.spark.worker.WorkerFailure;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The Arrow table of splits that follows a plan: object_id, split, key_0, … */
final class SplitTable {
  private static final int CHUNK_BYTES = 1 << 20;

  private SplitTable() {}

  /** The bytes of a table, to be read later. */
  static byte[] bytes(ReadableByteChannel channel) {
    ByteArrayOutputStream table = new ByteArrayOutputStream();
    ByteBuffer chunk = ByteBuffer.allocate(CHUNK_BYTES);
    try {
      while (channel.read(chunk) >= 0) {
        table.write(chunk.array(), 0, chunk.position());
        chunk.clear();
      }
    } catch (IOException e) {
      throw broken(e);
    }
    return table.toByteArray();
  }

  static List<PennonSplit> read(ReadableByteChannel channel) {
    List<PennonSplit> splits = new ArrayList<>();
    try (BufferAllocator allocator =
            ArrowUtils.rootAllocator().newChildAllocator("pennon plan", 0, Long.MAX_VALUE);
        ArrowStreamReader stream = new ArrowStreamReader(channel, allocator)) {
      VectorSchemaRoot root = stream.getVectorSchemaRoot();
      while (stream.loadNextBatch()) {
        append(root, splits);
      }
      drain(channel);
    } catch (IOException e) {
      throw broken(e);
    }
    return splits;
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
              List.of(objectIds.getUTF8String(row).toString().split(",")),
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
