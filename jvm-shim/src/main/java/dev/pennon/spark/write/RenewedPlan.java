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
      return catalog.loadTable(identifier) instanceof PennonTable newest && isLike(table, newest)
          ? Optional.of(new RenewedPlan(table, newest).renewed(statement))
          : Optional.empty();
    } catch (NoSuchTableException gone) {
      return Optional.empty();
    }
  }

  private static boolean isLike(PennonTable table, PennonTable newest) {
    return table.id().equals(newest.id())
        && table.schema().equals(newest.schema())
        && hidden(table).equals(hidden(newest));
  }

  private static Map<String, DataType> hidden(PennonTable table) {
    Map<String, DataType> types = new HashMap<>();
    for (MetadataColumn column : table.metadataColumns()) {
      types.put(column.name(), column.dataType());
    }
    return types;
  }

  private static Object pennonTable(Object named) {
    return named instanceof RowLevelOperationTable changed ? changed.table() : named;
  }

  private LogicalPlan renewed(LogicalPlan plan) {
    if (plan instanceof DataSourceV2Relation relation && isTimeTravel(relation)) {
      return plan;
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
    if (parameter instanceof PennonTable known && isTarget(known)) {
      return newest;
    }
    if (parameter instanceof RowLevelOperationTable changed
        && changed.table() instanceof PennonTable known
        && isTarget(known)) {
      return RowLevelOperationTable.apply(
          newest, operations.computeIfAbsent(changed.operation(), this::begun));
    }
    return parameter instanceof DataSourceV2Relation relation ? renewed(relation) : parameter;
  }

  private boolean isTarget(PennonTable other) {
    return other.equals(table);
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
