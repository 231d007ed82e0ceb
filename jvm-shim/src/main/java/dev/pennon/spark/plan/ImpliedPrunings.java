package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.expressions.ExpressionText;
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
 * executed with them, they say nothing that it does not. Which joins are, the worker decides: it is
 * told of each such filter, and of the join that implies it.
 */
final class ImpliedPrunings {
  /**
   * One side of a join.
   *
   * @param partner the plan of the other side
   * @param implied the prunings that the join implies
   * @param isBroadcast whether Spark broadcasts a side: what it prunes by a broadcast is left then
   */
  record Side(LogicalPlan partner, ArrayNode implied, boolean isBroadcast) {}

  private final Deque<Side> sides = new ArrayDeque<>();

  /** Looks at one side of a join while its other side is known. */
  <T> T within(Side side, Supplier<T> looking) {
    sides.push(side);
    try {
      return looking.get();
    } finally {
      sides.pop();
    }
  }

  /**
   * Adds the fields {@code condition}, without what joins above imply, and {@code prunings}.
   *
   * @param condition null for none
   */
  void describe(Expression condition, ObjectNode message) {
    ArrayNode implied = message.putArray("prunings");
    Expression kept = condition == null ? null : kept(condition, implied);
    message.put(
        "condition", ExpressionText.ofValue(kept == null ? Literal.TrueLiteral() : kept));
  }

  private Expression kept(Expression condition, ArrayNode prunings) {
    if (condition instanceof DynamicPruningSubquery pruning) {
      return isImplied(pruning, prunings) ? null : condition;
    }
    if (!(condition instanceof And and)) {
      return condition;
    }
    Expression left = kept(and.left(), prunings);
    Expression right = kept(and.right(), prunings);
    return left == null ? right : right == null ? left : new And(left, right);
  }

  private boolean isImplied(DynamicPruningSubquery pruning, ArrayNode prunings) {
    for (Side side : sides) {
      if (isOver(pruning, side.partner())) {
        // Spark itself drops those that are for broadcasts only where the join is none.
        if (!pruning.onlyInBroadcast() || side.isBroadcast()) {
          side.implied().add(pruning.exprId().id());
          prunings.add(pruning.exprId().id());
        }
        return true;
      }
    }
    return false;
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
