package dev.pennon.spark.statements;

import dev.pennon.spark.tables.DescribedTable;
import dev.pennon.spark.tables.ListedTable;
import dev.pennon.spark.tables.PennonTable;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Shows a table to DESCRIBE with the types that were typed, and lets {@code spark.catalog.listColumns} list one with
 * any partitioning.
 *
 * <p>The latter resolves a name that no statement stands around, and knows no transforms but those of
 * Spark's own tables: a table by itself is given without the others.
 */
public final class ShownTablesRule extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan instanceof DescribeRelation
        ? plan.mapChildren(child -> shown(child, DescribedTable::new))
        : shown(plan, ListedTable::new);
  }

  private static LogicalPlan shown(LogicalPlan plan, UnaryOperator<PennonTable> as) {
    return plan instanceof ResolvedTable named && named.table() instanceof PennonTable table
        ? ResolvedTable.create(named.catalog(), named.identifier(), as.apply(table))
        : plan;
  }
}
