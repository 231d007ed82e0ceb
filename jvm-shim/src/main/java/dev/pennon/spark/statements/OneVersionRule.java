package dev.pennon.spark.statements;

import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.tables.NotingTable;
import dev.pennon.spark.tables.PennonRowLevelOperation;
import dev.pennon.spark.tables.PennonTable;
import dev.pennon.spark.tables.PlanTables;
import dev.pennon.spark.tables.StagedPennonTable;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * Has a statement that reads the table which it changes read the version that it changes.
 *
 * <p>Between analysis and planning Spark loads anew what a statement reads, and not what it changes:
 * rows that are committed in between would be read, and be there all the same after an overwrite.
 * What a statement reads so is told with its commit, as the rows are that it changes, and what the
 * query of a table that may replace another one reads when it gets that one's name.
 */
public final class OneVersionRule extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand write
        && write.table() instanceof DataSourceV2Relation relation) {
      if (relation.table() instanceof StagedPennonTable made) {
        return over(made, plan);
      }
      if (relation.table() instanceof PennonTable target) {
        NotingTable read = target.noting();
        return over(read, (LogicalPlan) write.withNewTable((NamedRelation) over(read, relation)));
      }
      if (relation.table() instanceof RowLevelOperationTable changed
          && changed.operation() instanceof PennonRowLevelOperation statement) {
        return over(statement.table(), plan);
      }
    }
    return plan;
  }

  /**
   * Stands for a table in a plan for a moment: Spark keeps an operator for an equal one, and a table
   * that notes its scans equals the one that does not.
   */
  private record Placeholder(PennonTable table) implements Table {
    @Override
    public String name() {
      return table.name();
    }

    @Override
    public Set<TableCapability> capabilities() {
      return table.capabilities();
    }
  }

  private static LogicalPlan over(PennonTable read, LogicalPlan plan) {
    LogicalPlan marked =
        PlanTables.replaced(
            plan, (node, table) -> table instanceof PennonTable other ? as(read, other) : table);
    return PlanTables.replaced(
        marked, (node, table) -> table instanceof Placeholder place ? place.table() : table);
  }

  private static Table as(PennonTable read, PennonTable other) {
    if (read instanceof StagedPennonTable staged) {
      staged.fillFrom(other);
    }
    if (other.isOf(read) && !other.schema().equals(read.schema())) {
      String why = "its columns were changed while the statement was planned";
      throw WorkerFailure.of("WRITE_CONFLICT", "table", read.name(), "why", why).raise();
    }
    return other.isOf(read) ? new Placeholder(read) : other;
  }
}
