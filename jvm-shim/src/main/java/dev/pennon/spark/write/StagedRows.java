package dev.pennon.spark.write;

import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * What one task wrote and did not commit, in the worker's words.
 *
 * <p>No record: task results go through the serializer of the application, and Kryo cannot make
 * records.
 */
final class StagedRows implements WriterCommitMessage {
  private static final long serialVersionUID = 1L;

  private final String[] written;
  private final String[] deleted;

  StagedRows(String[] written, String[] deleted) {
    this.written = written.clone();
    this.deleted = deleted.clone();
  }

  /** The new rows, by partition. */
  String[] written() {
    return written.clone();
  }

  /** The rows that go, by leaf. */
  String[] deleted() {
    return deleted.clone();
  }
}
