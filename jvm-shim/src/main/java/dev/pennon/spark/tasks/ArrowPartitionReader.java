package dev.pennon.spark.tasks;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.worker.ReplyTable;
import dev.pennon.spark.worker.WorkerConnection;
import java.io.IOException;
import java.nio.channels.ReadableByteChannel;
import java.util.Arrays;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Arrow batches of one split from the worker, without a copy in the JVM.
 *
 * <p>Closing it before the end, which Spark does for a LIMIT, a failed or a killed task, closes the
 * connection, and the worker stops scanning.
 */
final class ArrowPartitionReader implements PartitionReader<ColumnarBatch> {
  private final ArrowPartitionReaders.Source source;
  private final PennonSplit split;
  private final StructType schema;
  private final boolean isDerived;
  private boolean finished;
  private WorkerConnection connection;
  private BufferAllocator allocator;
  private ReadableByteChannel channel;
  private ArrowStreamReader stream;
  private ArrowColumn[] columns;
  private ColumnarBatch batch;
  private long bytesRead;
  private JsonNode work;

  ArrowPartitionReader(
      ArrowPartitionReaders.Source source,
      PennonSplit split,
      StructType schema,
      boolean isDerived) {
    this.source = source;
    this.split = split;
    this.schema = schema;
    this.isDerived = isDerived;
    this.finished = split.isEmpty();
  }

  @Override
  public boolean next() {
    try {
      return nextBatch();
    } catch (IOException e) {
      throw ReplyTable.broken(e).raiseInTask();
    } catch (WorkerFailure failure) {
      throw source.arithmetic().raise(failure);
    }
  }

  private boolean nextBatch() throws IOException {
    if (!finished && stream == null) {
      open();
    }
    while (!finished) {
      int rowCount = stream.loadNextBatch() ? stream.getVectorSchemaRoot().getRowCount() : -1;
      if (rowCount < 0) {
        finish();
      } else if (rowCount > 0) {
        batch = batch(rowCount);
        return true;
      }
    }
    return false;
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  private void open() throws IOException {
    connection = WorkerConnection.ask(source.request(split)).connection();
    channel = connection.arrowChannel();
    allocator = ArrowUtils.rootAllocator().newChildAllocator("pennon read", 0, Long.MAX_VALUE);
    stream = new ArrowStreamReader(channel, allocator);
    columns = columns(stream.getVectorSchemaRoot());
  }

  /** The columns are pointed at each batch anew: a value is good until the next one. */
  private ColumnarBatch batch(int rowCount) {
    for (ArrowColumn column : columns) {
      column.refill();
    }
    if (!isDerived) {
      return new ColumnarBatch(columns, rowCount);
    }
    ConstantColumnVector key = new ConstantColumnVector(rowCount, DataTypes.LongType);
    key.setLong(split.partitionKey().getLong(0));
    ColumnVector[] withKey = Arrays.copyOf(columns, columns.length + 1, ColumnVector[].class);
    withKey[columns.length] = key;
    return new ColumnarBatch(withKey, rowCount);
  }

  private ArrowColumn[] columns(VectorSchemaRoot root) {
    List<FieldVector> vectors = root.getFieldVectors();
    ArrowColumn[] made = new ArrowColumn[vectors.size()];
    boolean matches = made.length == schema.length();
    for (int i = 0; matches && i < made.length; i++) {
      DataType expected = schema.fields()[i].dataType();
      made[i] = ArrowColumn.over(vectors.get(i), expected);
      matches = isSameKind(expected, made[i].dataType());
    }
    if (!matches) {
      String columns = root.getSchema() + " and not " + schema.sql();
      throw WorkerFailure.protocol("it sent the columns " + columns + " of " + split, null);
    }
    return made;
  }

  private static boolean isSameKind(DataType expected, DataType given) {
    return expected.getClass() == given.getClass()
        && (!(expected instanceof DecimalType) || expected.equals(given));
  }

  private void finish() throws IOException {
    finished = true;
    ReplyTable.drain(channel);
    WorkerConnection done = connection;
    connection = null;
    work = done.streamEnd().orElse(null);
    done.release();
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return Metric.ofTask(stream == null ? bytesRead : stream.bytesRead(), work);
  }

  /** Frees the buffers; the allocator fails if one of them is still held. */
  @Override
  public void close() throws IOException {
    finished = true;
    WorkerConnection unfinished = connection;
    connection = null;
    ArrowStreamReader opened = stream;
    stream = null;
    BufferAllocator used = allocator;
    allocator = null;
    try (used; unfinished) {
      if (opened != null) {
        bytesRead = opened.bytesRead();
        opened.close();
      }
    }
  }
}
