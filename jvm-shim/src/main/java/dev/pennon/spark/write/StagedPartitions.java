package dev.pennon.spark.write;

import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * What one task wrote and did not commit, in the worker's words.
 *
 * <p>Task results go through whatever serializer the user chose for his data: Kryo can neither make
 * a record nor the lists of {@code List.of}, so this is a plain class with an array.
 */
final class StagedPartitions implements WriterCommitMessage {
  private static final long serialVersionUID = 2L;

  private final String[] staged;

  StagedPartitions(String... staged) {
    this.staged = staged;
  }

  String[] staged() {
    return staged.clone();
  }
}
