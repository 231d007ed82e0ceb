package dev.pennon.spark.statements;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.tables.DescribedTable;
import dev.pennon.spark.tables.ListedTable;
import dev.pennon.spark.tables.PennonTable;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.DropColumns;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Identifier;

/**
 * Shows a table to DESCRIBE with the types that were typed, to DROP COLUMN with its hidden columns, and lets {@code
 * spark.catalog.listColumns} list one with any partitioning.
 *
 * <p>The latter resolves a name that no statement stands around, and knows no transforms but those of
 * Spark's own tables: a table by itself is given without the others. Columns to be dropped are found
 * as soon as their table is, so that it is put there before Spark looks for it.
 */
public final class ShownTablesRule extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof DropColumns) {
      return plan.mapChildren(child -> child instanceof UnresolvedTable table ? named(table) : child);
    }
    return plan instanceof DescribeRelation
        ? plan.mapChildren(child -> shown(child, DescribedTable::new))
        : shown(plan, ListedTable::new);
  }

  private static LogicalPlan named(UnresolvedTable unresolved) {
    var named = MissingTableRule.named(SparkSession.active(), unresolved.multipartIdentifier());
    if (named.isDefined() && named.get()._1() instanceof WorkerCatalog catalog) {
      Identifier at = named.get()._2();
      return shown(ResolvedTable.create(catalog, at, catalog.loadTable(at)), DescribedTable::new);
    }
    return unresolved;
  }

  private static LogicalPlan shown(LogicalPlan plan, UnaryOperator<PennonTable> as) {
    return plan instanceof ResolvedTable named && named.table() instanceof PennonTable table
        ? ResolvedTable.create(named.catalog(), named.identifier(), as.apply(table))
        : plan;
  }
}
