package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;

/**
 * A part of the query that the worker takes over.
 *
 * @param mode how its columns relate to the plan node that it stands for
 * @param scan the worker's token of it, which executors send with every task's
 * @param description the worker's text for EXPLAIN
 * @param rows estimated number of rows that it gives
 * @param bytes estimated bytes of them
 * @param restriction which groups of the node's it has; empty for all
 * @param partitions how many partitions its tables have and read
 * @param columns expression ids of its columns, in order
 * @param tasks one row per task: its key and the worker's token
 */
public record FragmentReply(
    Mode mode,
    String scan,
    String description,
    OptionalLong rows,
    OptionalLong bytes,
    String restriction,
    Partitions partitions,
    List<Long> columns,
    KeyedLeaves tasks) {
  /** Partitions that the scans of a fragment keep, and all of their tables. */
  public record Partitions(long read, long total) {}

  /** What the rows of a fragment are. */
  public enum Mode {
    /** The node's own rows. */
    ROWS,
    /** Groups of an aggregate, several of each: Spark merges them. */
    PARTIAL,
    /** Groups of an aggregate, one of each. */
    COMPLETE
  }

  /** The fragments of a reply by the positions of the nodes that they stand for. */
  static Map<Integer, FragmentReply> ofReply(JsonNode reply, Map<Integer, KeyedLeaves> tasks) {
    Map<Integer, FragmentReply> fragments = new HashMap<>();
    for (JsonNode fragment : Messages.field(reply, "DeriveKeysReply", "fragments")) {
      List<Long> columns = new ArrayList<>();
      Messages.field(fragment, "FragmentReply", "columns").forEach(id -> columns.add(id.asLong()));
      int root = Messages.field(fragment, "FragmentReply", "root").asInt();
      fragments.put(
          root,
          new FragmentReply(
              Mode.valueOf(Messages.field(fragment, "FragmentReply", "mode").asText().toUpperCase(Locale.ROOT)),
              Messages.field(fragment, "FragmentReply", "scan").asText(),
              Messages.field(fragment, "FragmentReply", "description").asText(),
              Messages.toOptional(Messages.field(fragment, "FragmentReply", "rows")),
              Messages.toOptional(Messages.field(fragment, "FragmentReply", "bytes")),
              Messages.field(fragment, "FragmentReply", "restriction").asText(),
              new Partitions(
                  Messages.field(fragment, "FragmentReply", "partitions_read").asLong(),
                  Messages.field(fragment, "FragmentReply", "partitions_total").asLong()),
              columns,
              tasks.getOrDefault(root, new KeyedLeaves())));
    }
    return fragments;
  }

  /** The token may hold storage options: it is never shown. */
  @Override
  public String toString() {
    return "FragmentReply[" + mode + "]";
  }
}
