package dev.pennon.spark.expressions;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Trees.operands;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * Subqueries of one row that is the same for every other row, as columns beside the rows.
 *
 * <p>Those that Spark has merged are one subquery of a struct, of which each takes a field.
 */
public final class ScalarSubqueries {
  private record Value(LogicalPlan rows, Attribute column) {}

  private ScalarSubqueries() {}

  /** What the subqueries in an operator's own expressions read, each once. */
  public static Collection<LogicalPlan> of(LogicalPlan plan) {
    Map<ExprId, LogicalPlan> byId = new LinkedHashMap<>();
    for (Expression expression : items(plan.expressions())) {
      operands(expression, part -> value(part) == null ? items(part.children()) : List.of()).stream()
          .map(ScalarSubqueries::value)
          .filter(Objects::nonNull)
          .forEach(value -> byId.putIfAbsent(value.rows.output().head().exprId(), value.rows));
    }
    return byId.values();
  }

  /** The column of a subquery; null for any other expression, and for one that outer rows decide. */
  static Attribute column(Expression expression) {
    Value value = value(expression);
    return value == null ? null : value.column;
  }

  private static Value value(Expression expression) {
    LogicalPlan plan = plan(expression);
    if (plan != null) {
      return new Value(plan, plan.output().head());
    }
    return expression instanceof GetStructField field
            && plan(field.child()) instanceof Project project
            && project.projectList().head() instanceof Alias alias
            && alias.child() instanceof CreateNamedStruct struct
            && struct.valExprs().apply(field.ordinal()) instanceof Attribute merged
        ? new Value(project.child(), merged)
        : null;
  }

  private static LogicalPlan plan(Expression expression) {
    return expression instanceof ScalarSubquery subquery
            && subquery.children().isEmpty()
            && subquery.plan().resolved()
            && subquery.plan().output().size() == 1
        ? subquery.plan()
        : null;
  }
}
