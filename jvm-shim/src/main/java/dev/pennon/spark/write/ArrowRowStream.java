package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.ArrowSchemas;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import dev.pennon.spark.worker.WorkerConnection;
import java.io.Closeable;
import java.io.IOException;
import java.nio.channels.WritableByteChannel;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * Streams rows of one task to the worker as Arrow batches: rows to write, or ids of rows to delete.
 *
 * <p>The worker writes what comes and keeps it only when the stream ends in order: a connection
 * that closes before means that the task gave up. A task without rows sends nothing.
 */
final class ArrowRowStream implements Closeable {
  private static final String[] NOTHING = {};
  private static final int BATCH_ROWS = 8192;
  private static final long BATCH_BYTES = 16L << 20;
  private static final int ROWS_BETWEEN_SIZE_CHECKS = 32;

  private final String operation;
  private final SecretText write;
  private final StructType schema;
  private WorkerConnection connection;
  private BufferAllocator allocator;
  private VectorSchemaRoot root;
  private ArrowWriter rows;
  private WritableByteChannel channel;
  private ArrowStreamWriter stream;
  private int rowsInBatch;
  private long rowsWritten;

  /**
   * A stream that sends nothing yet.
   *
   * @param operation {@code write} for whole rows, {@code write_deletes} for the ids of rows that go
   */
  ArrowRowStream(String operation, SecretText write, StructType schema) {
    this.operation = operation;
    this.write = write;
    this.schema = schema;
  }

  void write(InternalRow row) throws IOException {
    try {
      if (stream == null) {
        open();
      }
      rows.write(row);
      rowsInBatch++;
      rowsWritten++;
      if (rowsInBatch % ROWS_BETWEEN_SIZE_CHECKS == 0
          && (rowsInBatch >= BATCH_ROWS || bytesInBatch() >= BATCH_BYTES)) {
        sendBatch();
      }
    } catch (WorkerFailure failure) {
      throw failure.raiseInTask();
    }
  }

  /** Spark's own count of these bytes is of one type in its first releases of 4.1, and of another since. */
  private long bytesInBatch() {
    root.setRowCount(rowsInBatch);
    return root.getFieldVectors().stream().mapToLong(FieldVector::getBufferSize).sum();
  }

  private void open() throws IOException {
    Schema arrow = ArrowSchemas.of(schema);
    allocator = ArrowUtils.rootAllocator().newChildAllocator("pennon write", 0, Long.MAX_VALUE);
    root = VectorSchemaRoot.create(arrow, allocator);
    rows = ArrowWriter.create(root);
    ObjectNode request = Messages.request(operation);
    request.put("write", write.text());
    connection = WorkerConnection.open();
    connection.send(request);
    channel = connection.arrowOutputChannel();
    stream = new ArrowStreamWriter(root, null, channel);
    stream.start();
  }

  private void sendBatch() throws IOException {
    rows.finish();
    stream.writeBatch();
    rows.reset();
    rowsInBatch = 0;
  }

  /** Ends the stream in order; gives what the worker staged, in its own words. */
  String[] finish() throws IOException {
    try {
      return stream == null ? NOTHING : finishStream();
    } catch (WorkerFailure failure) {
      throw failure.raiseInTask();
    }
  }

  private String[] finishStream() throws IOException {
    if (rowsInBatch > 0) {
      sendBatch();
    }
    stream.end();
    channel.close();
    JsonNode reply = connection.receive();
    WorkerConnection done = connection;
    connection = null;
    done.release();
    return Replies.read(reply, WriteReply.class).staged();
  }

  private record WriteReply(String[] staged) {}

  /** Breaks the stream off, whereupon the worker deletes what it wrote. */
  void abort() {
    WorkerConnection unfinished = connection;
    connection = null;
    if (unfinished != null) {
      unfinished.close();
    }
  }

  long rowsWritten() {
    return rowsWritten;
  }

  @Override
  public void close() {
    abort();
    BufferAllocator used = allocator;
    VectorSchemaRoot vectors = root;
    allocator = null;
    root = null;
    try (used; vectors) {
      rows = null;
    }
  }
}
