package dev.pennon.spark.search;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import dev.pennon.spark.compat.Columns;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * Has Lance find the rows of {@code ORDER BY vector_l2_distance(v, array(…)) LIMIT 10}, and perhaps
 * a few more: Spark sorts these instead of all, so that its own values decide.
 */
public final class FirstRowsRule extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (SearchedTable.isChangedBy(plan)) {
      return plan;
    }
    Table rows = plan instanceof GlobalLimit limit ? rowsOf(limit) : null;
    return rows == null ? plan.mapChildren(this::apply) : reading(rows, plan);
  }

  /** What is sorted instead of a table; null where that is the table. */
  private static Table rowsOf(GlobalLimit limit) {
    LogicalPlan plan = limit.child();
    while (plan instanceof LocalLimit || plan instanceof Project) {
      plan = plan.children().head();
    }
    if (!(plan instanceof Sort sort) || !sort.global() || sort.order().size() != 1) {
      return null;
    }
    SortOrder order = sort.order().head();
    NamedExpression named = Columns.named(order.child(), "ranking", NamedExpression.newExprId());
    SearchedTable table =
        SearchedTable.of(new Project(sequence(List.of(named)), sort.child()))
            .filter(SearchedTable::isOfWorkers)
            .orElse(null);
    Expression ranking = table == null ? null : Columns.valueOf(table.columns().get(0));
    NearestJoin compared =
        table == null ? null : NearestJoin.of(ranking, value -> value.foldable());
    if (compared == null || !ranking.prettyName().startsWith("vector_")) {
      return null;
    }
    String ordered = order.direction().sql() + " " + order.nullOrdering().sql();
    Table rows = table.searched("first_rows", Map.of(
        "query_vector", SearchFunctions.json(compared.query()),
        "vector_column", SearchFunctions.json(compared.vector().name()),
        "num_results", SearchFunctions.json(limit.limitExpr()),
        "order", SearchFunctions.json(ranking.prettyName() + " " + ordered)));
    return rows.columns().length == 0 ? null : rows;
  }

  private static LogicalPlan reading(Table rows, LogicalPlan plan) {
    if (!(plan instanceof DataSourceV2Relation relation)) {
      return plan.mapChildren(child -> reading(rows, child));
    }
    Object[] parameters = items(relation.productIterator().toSeq()).toArray();
    parameters[0] = rows;
    return relation.makeCopy(parameters);
  }
}
