package dev.pennon.spark.expressions;

import static dev.pennon.spark.compat.Sequences.items;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Subqueries of one value that are the same for every row, as columns beside the rows. */
public final class ScalarSubqueries {
  private ScalarSubqueries() {}

  /** Those that an operator's own expressions name. */
  public static List<ScalarSubquery> of(LogicalPlan plan) {
    List<ScalarSubquery> found = new ArrayList<>();
    Deque<Expression> waiting = new ArrayDeque<>(items(plan.expressions()));
    while (!waiting.isEmpty()) {
      Expression next = waiting.pop();
      if (column(next) != null) {
        found.add((ScalarSubquery) next);
      } else {
        items(next.children()).forEach(waiting::push);
      }
    }
    return found;
  }

  /** The column of a subquery; null for any other expression, and for one that outer rows decide. */
  static Attribute column(Expression expression) {
    return expression instanceof ScalarSubquery subquery
            && subquery.children().isEmpty()
            && subquery.plan().resolved()
            && subquery.plan().output().size() == 1
        ? subquery.plan().output().head()
        : null;
  }
}
