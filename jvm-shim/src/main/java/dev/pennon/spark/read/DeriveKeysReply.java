package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The worker's answer about derived keys; operators are named by their positions in the request.
 *
 * @param scans what the key of each scan that has one stands for, and its groups
 * @param served the joins, groupings and windows that use the keys
 * @param computed what Spark computes the key from on a side of a join that has no partitioning
 * @param ordered the scans whose splits can be read in the order of the scan
 * @param declined the scans that are to be shuffled, and report nothing
 * @param fragments the parts of the query that the worker takes over
 * @param oneTask whether the whole query is so small that one task computes it
 * @param verdicts what was found at each join, aggregate and window, for people
 */
public record DeriveKeysReply(
    Map<Integer, String> scans,
    Set<Integer> served,
    Map<Integer, List<ComputedKey>> computed,
    Set<Integer> ordered,
    Set<Integer> declined,
    List<FragmentReply> fragments,
    boolean oneTask,
    List<JsonNode> verdicts) {
  /** A function of attributes, which are named by their expression ids. */
  public record ComputedKey(String function, int numBuckets, List<Long> attributes) {}

  public boolean changesThePlan() {
    return !served.isEmpty() || !declined.isEmpty() || !fragments.isEmpty();
  }
}
