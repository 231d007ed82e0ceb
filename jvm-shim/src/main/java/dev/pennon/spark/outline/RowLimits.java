package dev.pennon.spark.outline;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.expressions.PlanTexts;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;

/** The limits of a plan: the sorts of which only the first rows are wanted. */
final class RowLimits {
  /** The sorts below limits and offsets: how many rows are wanted; null for all. */
  private final Map<LogicalPlan, Integer> sorts = new IdentityHashMap<>();
  /** What stands right below a limit of the whole: Spark knows both as one, without a key. */
  private final Set<LogicalPlan> collected = Collections.newSetFromMap(new IdentityHashMap<>());

  /** The number of rows of a limit or an offset; null where it is neither, or computed. */
  static Integer count(LogicalPlan plan) {
    boolean isCut = plan instanceof LocalLimit || plan instanceof GlobalLimit || plan instanceof Offset;
    Expression rows = isCut ? plan.expressions().head() : null;
    return rows instanceof Literal literal && literal.value() instanceof Integer count
        ? count : null;
  }

  /** Looks at a node before its children are looked at. */
  void note(LogicalPlan plan) {
    if (plan instanceof GlobalLimit || plan instanceof Offset) {
      collected.addAll(items(plan.children()));
    }
    if (count(plan) != null) {
      LogicalPlan below = plan.children().head();
      while (below instanceof Project project) {
        below = project.child();
      }
      if (below instanceof Sort sort && sort.global()) {
        sorts.put(sort, plan instanceof Offset ? null : count(plan));
      }
    }
  }

  /** Whether a key may stand between a limit and what is above it. */
  boolean passesKeys(LogicalPlan limit) {
    return limit instanceof LocalLimit && !collected.contains(limit);
  }

  /** A limit, or a sort below one or an offset, with its limit; null for anything else. */
  LogicalPlan limited(LogicalPlan plan) {
    if (sorts.containsKey(plan)) {
      Integer count = sorts.get(plan);
      return count == null ? plan : new LocalLimit(Literal$.MODULE$.apply(count), plan);
    }
    return plan instanceof LocalLimit ? plan : null;
  }

  /** Adds the fields {@code count} and {@code order} of a sort over an aggregate, if it has one. */
  void describe(Sort sort, SplitAggregate split, PlanTexts texts, ObjectNode message) {
    ArrayNode order = message.put("count", sorts.get(sort)).putArray("order");
    texts.addOrder(
        items(sort.order()), value -> split == null ? value : split.overColumns(value), order);
  }
}
