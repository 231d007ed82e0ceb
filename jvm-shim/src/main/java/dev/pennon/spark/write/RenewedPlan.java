package dev.pennon.spark.write;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.PennonTable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.TimeTravelSpec;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
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
  static Optional<LogicalPlan> of(LogicalPlan statement, String token) {
    List<Object> named = new ArrayList<>(parameters(statement));
    named.addAll(items(statement.children()));
    for (Object each : named) {
      Object target = each instanceof LogicalPlan plan ? EliminateSubqueryAliases.apply(plan) : each;
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
    LogicalPlan renewed = renewed(statement);
    return namesOther ? Optional.empty() : Optional.of(renewed);
  }

  /** Whether a hidden column that is named has another type by now: {@code _partition}. */
  private boolean namesOther(DataSourceV2Relation relation) {
    Map<String, DataType> named = new HashMap<>();
    items(relation.output()).forEach(column -> named.put(column.name(), column.dataType()));
    List.of(newest.schema().fieldNames()).forEach(named::remove);
    for (MetadataColumn column : newest.metadataColumns()) {
      named.remove(column.name(), column.dataType());
    }
    return !named.isEmpty();
  }

  private static Object pennonTable(Object named) {
    return named instanceof RowLevelOperationTable changed ? changed.table() : named;
  }

  private LogicalPlan renewed(LogicalPlan plan) {
    if (plan instanceof DataSourceV2Relation relation && isTimeTravel(relation)) {
      return plan;
    }
    if (plan instanceof DataSourceV2Relation relation && isTarget(pennonTable(relation.table()))) {
      namesOther |= namesOther(relation);
    }
    LogicalPlan below = plan.mapChildren(this::renewed);
    below = below.mapExpressions(this::renewed);
    Object[] before = parameters(below).toArray();
    Object[] after = Arrays.stream(before).map(this::renewedParameter).toArray();
    return Arrays.equals(before, after) ? below : below.makeCopy(after);
  }

  private Expression renewed(Expression expression) {
    Expression below = expression.mapChildren(this::renewed);
    return below instanceof SubqueryExpression subquery
        ? subquery.withNewPlan(renewed(subquery.plan()))
        : below;
  }

  private Object renewedParameter(Object parameter) {
    if (isTarget(parameter)) {
      return newest;
    }
    if (parameter instanceof RowLevelOperationTable changed && isTarget(changed.table())) {
      return RowLevelOperationTable.apply(
          newest, operations.computeIfAbsent(changed.operation(), this::begun));
    }
    return parameter instanceof DataSourceV2Relation relation ? renewed(relation) : parameter;
  }

  private boolean isTarget(Object other) {
    return table.equals(other);
  }

  private RowLevelOperation begun(RowLevelOperation before) {
    return newest
        .newRowLevelOperationBuilder(
            new RowLevelOperationInfo() {
              @Override
              public CaseInsensitiveStringMap options() {
                return CaseInsensitiveStringMap.empty();
              }

              @Override
              public RowLevelOperation.Command command() {
                return before.command();
              }
            })
        .build();
  }

  private static boolean isTimeTravel(DataSourceV2Relation relation) {
    return parameters(relation).stream()
        .anyMatch(each -> each instanceof Some<?> some && some.value() instanceof TimeTravelSpec);
  }

  private static List<Object> parameters(LogicalPlan plan) {
    return items(plan.productIterator().toSeq());
  }
}
