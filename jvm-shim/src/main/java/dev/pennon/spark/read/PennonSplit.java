package dev.pennon.spark.read;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;

/**
 * One piece of work for a task, with the values of the reported keys.
 *
 * @param objectIds the partitions that it belongs to
 * @param token what the worker needs to read it; empty when there is nothing to read
 * @param partitionKey one value per reported key
 */
record PennonSplit(List<String> objectIds, String token, InternalRow partitionKey)
    implements HasPartitionKey {
  private static final long serialVersionUID = 1L;

  /** Stands for a scan without partitions: Spark joins without a shuffle only if there is one. */
  static PennonSplit empty(InternalRow nullKey) {
    return new PennonSplit(List.of(), "", nullKey);
  }

  /** Splits that one task reads one after the other, under one key. */
  static PennonSplit together(List<PennonSplit> splits, InternalRow key) {
    List<String> objectIds =
        splits.stream().flatMap(split -> split.objectIds().stream()).toList();
    String tokens = splits.stream().map(PennonSplit::token).collect(Collectors.joining(","));
    return new PennonSplit(objectIds, "[" + tokens + "]", key);
  }

  /** A part of this split, as the worker names it. */
  PennonSplit part(String partToken) {
    return new PennonSplit(objectIds, partToken, partitionKey);
  }

  /** Whether it still has rows when only these partitions have. */
  boolean isPossible(Set<String> possible) {
    return objectIds.stream().anyMatch(possible::contains);
  }

  boolean isEmpty() {
    return token.isEmpty();
  }

  /** The token may hold storage options: it is never shown. */
  @Override
  public String toString() {
    return "PennonSplit" + objectIds;
  }
}
