package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;

/** The limits of a plan: the sorts of which only the first rows are wanted. */
final class RowLimits {
  private final Map<Sort, Integer> sorts = new IdentityHashMap<>();
  /** What stands right below a limit of the whole: Spark knows both as one, without a key. */
  private final Set<LogicalPlan> collected = Collections.newSetFromMap(new IdentityHashMap<>());

  /** Looks at a node before its children are looked at. */
  void noteCollected(LogicalPlan plan) {
    if (plan instanceof GlobalLimit || plan instanceof Offset) {
      collected.addAll(items(plan.children()));
    }
  }

  /** Looks at a limit of each task before what it limits is looked at. */
  void note(LocalLimit limit, int count) {
    LogicalPlan below = limit.child();
    while (below instanceof Project project) {
      below = project.child();
    }
    if (below instanceof Sort sort && sort.global()) {
      sorts.put(sort, count);
    }
  }

  /** Whether a key may stand between a limit and what is above it. */
  boolean passesKeys(LocalLimit limit) {
    return !collected.contains(limit);
  }

  /** A limit, or a sort below one, with that limit; null for anything else. */
  LogicalPlan limited(LogicalPlan plan) {
    if (plan instanceof Sort sort && sorts.containsKey(sort)) {
      return new LocalLimit(Literal$.MODULE$.apply(sorts.get(sort)), sort);
    }
    return plan instanceof LocalLimit ? plan : null;
  }

  /** Adds the fields {@code count} and {@code order} of a sort over an aggregate, if it has one. */
  void describe(Sort sort, SplitAggregate split, ObjectNode message) {
    ArrayNode order = message.put("count", sorts.get(sort)).putArray("order");
    for (SortOrder key : items(sort.order())) {
      Expression value = split == null ? key.child() : split.overColumns(key.child());
      order
          .addArray()
          .add(FragmentText.ofValue(value))
          .add(key.direction() == Ascending$.MODULE$)
          .add(key.nullOrdering() == NullsFirst$.MODULE$);
    }
  }
}
