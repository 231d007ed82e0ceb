package dev.pennon.spark.read;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;

/**
 * One piece of work for a task, with the values of the reported keys.
 *
 * @param objectId the partition that it belongs to
 * @param token what the worker needs to read it; empty when there is nothing to read
 * @param partitionKey one value per reported key
 */
record PennonSplit(String objectId, String token, InternalRow partitionKey)
    implements HasPartitionKey {
  private static final long serialVersionUID = 1L;

  /** Stands for a scan without partitions: Spark joins without a shuffle only if there is one. */
  static PennonSplit empty(InternalRow nullKey) {
    return new PennonSplit("", "", nullKey);
  }

  PennonSplit withKey(InternalRow key) {
    return new PennonSplit(objectId, token, key);
  }

  boolean isEmpty() {
    return token.isEmpty();
  }

  /** The token may hold storage options: it is never shown. */
  @Override
  public String toString() {
    return "PennonSplit[" + objectId + "]";
  }
}
