package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Filters by the values of a join's other side, which Spark puts below the join: where the join is
 * executed with them, they say nothing that it does not.
 */
final class ImpliedPrunings {
  /** For each join above that shuffles: the plan of its other side. */
  private final Deque<LogicalPlan> partners = new ArrayDeque<>();

  /** Looks at one side of a join while its other side is known. */
  <T> T beside(LogicalPlan partner, Supplier<T> looking) {
    partners.push(partner);
    try {
      return looking.get();
    } finally {
      partners.pop();
    }
  }

  /** The condition without what joins above imply. */
  Expression removedFrom(Expression condition) {
    Expression kept = kept(condition);
    return kept == null ? Literal.TrueLiteral() : kept;
  }

  private Expression kept(Expression condition) {
    if (condition instanceof DynamicPruningSubquery pruning) {
      return partners.stream().anyMatch(partner -> isOver(pruning, partner)) ? null : condition;
    }
    if (!(condition instanceof And and)) {
      return condition;
    }
    Expression left = kept(and.left());
    Expression right = kept(and.right());
    return left == null ? right : right == null ? left : new And(left, right);
  }

  /** Whether the values of a pruning come from this plan: attributes are unique in a query. */
  private static boolean isOver(DynamicPruningSubquery pruning, LogicalPlan partner) {
    return items(partner.collectLeaves()).stream()
        .anyMatch(
            leaf ->
                items(pruning.buildQuery().collectLeaves()).stream()
                    .anyMatch(other -> shares(leaf, other)));
  }

  private static boolean shares(LogicalPlan leaf, LogicalPlan other) {
    return items(other.output()).stream()
        .anyMatch(attribute -> leaf.outputSet().contains(attribute));
  }
}
