package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.failures.WorkerFailure;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The Arrow table that follows a reply, read to its end. */
public final class ReplyTable {
  private ReplyTable() {}

  /** As {@link WorkerConnection#answer}, for a reply that a table follows, batch by batch. */
  public static JsonNode answer(ObjectNode request, Consumer<VectorSchemaRoot> reader) {
    try {
      WorkerConnection.Asked asked = WorkerConnection.ask(request);
      try (WorkerConnection connection = asked.connection()) {
        read(connection.arrowChannel(), reader);
        connection.release();
        return asked.reply();
      }
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  private static void read(ReadableByteChannel channel, Consumer<VectorSchemaRoot> reader) {
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

  /** The rows of some columns of a batch, in Spark's internal form. */
  public static List<InternalRow> rows(VectorSchemaRoot root, List<FieldVector> columns) {
    ColumnVector[] vectors = columns.stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
    ColumnarBatch batch = new ColumnarBatch(vectors, root.getRowCount());
    List<InternalRow> rows = new ArrayList<>(root.getRowCount());
    for (int row = 0; row < root.getRowCount(); row++) {
      rows.add(batch.getRow(row).copy());
    }
    return rows;
  }

  /** Reads up to the end frame behind Arrow's own end, which completes the exchange. */
  public static void drain(ReadableByteChannel channel) throws IOException {
    ByteBuffer rest = ByteBuffer.allocate(64);
    while (channel.read(rest) >= 0) {
      rest.clear();
    }
  }

  public static WorkerFailure broken(IOException cause) {
    return WorkerFailure.protocol("an Arrow stream cannot be read: " + cause.getMessage(), cause);
  }
}
