package dev.pennon.spark.tables;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.worker.SecretText;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import scala.Some;

/** An analyzed statement over the newest version of the table that it changes. */
final class RenewedPlan {
  private final PennonTable table;
  private final PennonTable newest;
  private final Map<RowLevelOperation, RowLevelOperation> operations = new HashMap<>();
  private boolean namesOther;

  private RenewedPlan(PennonTable table, PennonTable newest) {
    this.table = table;
    this.newest = newest;
  }

  /**
   * The statement over the table as it is now.
   *
   * @param token the worker's description of the table that the statement was analyzed with
   * @return nothing where it changes another table, or columns that it names are others by now
   */
  static Optional<LogicalPlan> of(LogicalPlan statement, SecretText token) {
    List<Object> named = new ArrayList<>(items(statement.productIterator().toSeq()));
    named.addAll(items(statement.children()));
    for (Object part : named) {
      Object target = part instanceof LogicalPlan plan ? EliminateSubqueryAliases.apply(plan) : part;
      if (target instanceof DataSourceV2Relation relation
          && pennonTable(relation.table()) instanceof PennonTable table
          && table.handle().token().equals(token)
          && relation.catalog() instanceof Some<?> catalog
          && relation.identifier() instanceof Some<Identifier> identifier) {
        return over(statement, table, (TableCatalog) catalog.value(), identifier.value());
      }
      if (target instanceof ResolvedTable resolved
          && resolved.table() instanceof PennonTable table
          && table.handle().token().equals(token)) {
        return over(statement, table, resolved.catalog(), resolved.identifier());
      }
    }
    return Optional.empty();
  }

  private static Optional<LogicalPlan> over(
      LogicalPlan statement, PennonTable table, TableCatalog catalog, Identifier identifier) {
    try {
      return catalog.loadTable(identifier) instanceof PennonTable newest
              && table.id().equals(newest.id())
              && table.schema().equals(newest.schema())
          ? new RenewedPlan(table, newest).renewedStatement(statement)
          : Optional.empty();
    } catch (NoSuchTableException gone) {
      return Optional.empty();
    }
  }

  private Optional<LogicalPlan> renewedStatement(LogicalPlan statement) {
    LogicalPlan renewed = PlanTables.replaced(statement, this::renewed);
    return namesOther ? Optional.empty() : Optional.of(renewed);
  }

  /** Whether a hidden column that is named has another type by now: {@code _partition}. */
  private boolean namesOther(DataSourceV2Relation relation) {
    Set<String> own = Set.of(newest.schema().fieldNames());
    Map<String, DataType> hidden = new HashMap<>();
    List.of(newest.metadataColumns()).forEach(part -> hidden.put(part.name(), part.dataType()));
    return items(relation.output()).stream()
        .filter(column -> !own.contains(column.name()))
        .anyMatch(column -> !column.dataType().equals(hidden.get(column.name())));
  }

  private static Object pennonTable(Object named) {
    return named instanceof RowLevelOperationTable changed ? changed.table() : named;
  }

  private Object renewed(LogicalPlan plan, Object parameter) {
    if (parameter instanceof DataSourceV2Relation relation) {
      return PlanTables.replaced(relation, this::renewed);
    }
    if (!table.equals(pennonTable(parameter))) {
      return parameter;
    }
    namesOther |= plan instanceof DataSourceV2Relation relation && namesOther(relation);
    return parameter instanceof RowLevelOperationTable changed
        ? RowLevelOperationTable.apply(
            newest, operations.computeIfAbsent(changed.operation(), old -> newest.begun(old.command())))
        : newest;
  }
}
