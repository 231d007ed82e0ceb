package dev.pennon.spark.write;

import java.util.List;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What one task wrote and did not commit, in the worker's words. */
record StagedPartitions(List<String> staged) implements WriterCommitMessage {
  private static final long serialVersionUID = 1L;
}
