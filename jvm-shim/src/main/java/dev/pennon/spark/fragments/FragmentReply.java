package dev.pennon.spark.fragments;

import dev.pennon.spark.worker.SecretText;
import java.util.List;
import java.util.OptionalLong;

/**
 * A part of the query that the worker takes over.
 *
 * @param root the position of the node that it stands for
 * @param mode how its columns relate to that node
 * @param scan the worker's token of it, which executors send with every task's
 * @param description the worker's text for EXPLAIN, of short lines
 * @param details its whole lines, for EXPLAIN FORMATTED
 * @param rows estimated number of rows that it gives
 * @param bytes estimated bytes of them
 * @param restricted whether it has but some of the node's groups, as its token says which
 * @param keyed whether its tasks' key is its last column
 * @param partitionsRead the partitions that its scans keep
 * @param partitionsTotal all partitions of their tables
 * @param columns the numbers of its columns, in order
 */
public record FragmentReply(
    int root,
    Mode mode,
    SecretText scan,
    String description,
    String details,
    OptionalLong rows,
    OptionalLong bytes,
    boolean restricted,
    boolean keyed,
    long partitionsRead,
    long partitionsTotal,
    List<Long> columns) {
  /** What the rows of a fragment are. */
  public enum Mode {
    /** The node's own rows. */
    ROWS,
    /** Groups of an aggregate, several of each: Spark merges them. */
    PARTIAL,
    /** Groups of an aggregate, one of each. */
    COMPLETE
  }
}
