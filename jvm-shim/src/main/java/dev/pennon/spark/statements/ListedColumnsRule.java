package dev.pennon.spark.statements;

import dev.pennon.spark.catalog.ListedTable;
import dev.pennon.spark.catalog.PennonTable;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Lets {@code spark.catalog.listColumns} list a table with any partitioning.
 *
 * <p>It resolves a name that no statement stands around, and knows no transforms but those of Spark's
 * own tables: a table by itself is given without the others.
 */
public final class ListedColumnsRule extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan instanceof ResolvedTable alone && alone.table() instanceof PennonTable table
        ? ResolvedTable.create(alone.catalog(), alone.identifier(), new ListedTable(table))
        : plan;
  }
}
