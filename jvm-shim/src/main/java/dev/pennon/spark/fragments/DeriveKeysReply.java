package dev.pennon.spark.fragments;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.compat.Columns;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;

/**
 * The worker's answer about derived keys; operators are named by their positions in the request.
 *
 * @param scans what the key of each scan that has one stands for, and its groups
 * @param served the joins, groupings and windows that use the keys
 * @param computed what Spark computes the key from on a side of a join that has no partitioning
 * @param ordered the scans whose splits can be read in the order of the scan
 * @param fragments the parts of the query that the worker takes over
 * @param oneTask whether the whole query is so small that one task computes it
 * @param packed the scans whose partitioning is not used
 * @param verdicts what was found at each join, aggregate and window, for people
 */
public record DeriveKeysReply(
    Map<Integer, String> scans,
    Set<Integer> served,
    Map<Integer, List<ComputedKey>> computed,
    Set<Integer> ordered,
    List<FragmentReply> fragments,
    boolean oneTask,
    Set<Integer> packed,
    List<JsonNode> verdicts) {
  /** A function of columns. */
  public record ComputedKey(String function, int numBuckets, List<ColumnPath> columns) {}

  /** A column by its number, or with names a field in it. */
  public record ColumnPath(long attribute, List<String> names) {
    public Expression in(Expression column) {
      Expression field = column;
      for (String name : names) {
        field = Columns.field(field, name);
      }
      return field;
    }
  }

  public boolean changesThePlan() {
    return !served.isEmpty() || !packed.isEmpty() || !fragments.isEmpty();
  }
}
