package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.appended;
import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.compat.Sequences;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.tables.PennonRowLevelOperation;
import dev.pennon.spark.tables.PennonTable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;

/**
 * Lets DELETE, UPDATE and MERGE name metadata columns of their table: {@code _spec_version = 1}.
 *
 * <p>Spark rewrites such a statement over a relation that has the table's columns and those that
 * name a row; what else a condition names is missing there. Where it adds them before the rewrite,
 * it takes them for columns that an UPDATE has to assign. So they stay out of Spark's sight until
 * the statement is rewritten, and the relation is given them then. An overwrite, which is not
 * rewritten, names none.
 */
public final class RowChangeMetadata extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof WriteDelta write
        && write.originalTable() instanceof DataSourceV2Relation original
        && isReadByStatement((LogicalPlan) write.table())) {
      LogicalPlan shown = supplied(plan, metadataOf(original));
      return write.query() instanceof MergeRows
          ? shown.mapExpressions(part -> isSound(part) ? part : Literal.TrueLiteral())
          : shown.mapChildren(query -> query instanceof Expand ? computedBelow(query) : query);
    }
    if (plan instanceof OverwriteByExpression overwrite
        && overwrite.table() instanceof DataSourceV2Relation target
        && target.table() instanceof PennonTable table
        && overwrite.deleteExpr().resolved()
        && !overwrite.deleteExpr().references().subsetOf(target.outputSet())) {
      String condition = overwrite.deleteExpr().sql();
      throw WorkerFailure.of("OVERWRITE_BY_METADATA", "table", table.name(), "condition", condition)
          .raise();
    }
    boolean sets = plan instanceof UpdateTable || plan instanceof MergeIntoTable;
    if (sets
        && EliminateSubqueryAliases.apply(plan.children().head()) instanceof UnresolvedRelation named
        && PennonParser.fullName(SparkSession.active(), named.name()).isPresent()) {
      // Among the first rules: what is set and is no column of the table, Spark's drop in silence.
      Analyzer analyzer = SparkSession.active().sessionState().analyzer();
      LogicalPlan target = analyzer.execute(plan.children().head());
      hidden(plan.mapExpressions(part -> resolved(part, target, analyzer)), target);
      return plan;
    }
    return sets || plan instanceof DeleteFromTable ? hidden(plan, plan.children().head()) : plan;
  }

  /** An expression with the names that are set resolved. */
  private static Expression resolved(Expression part, LogicalPlan target, Analyzer analyzer) {
    if (part instanceof Assignment assigned && assigned.key() instanceof UnresolvedAttribute key) {
      Option<NamedExpression> column = target.resolve(key.nameParts(), analyzer.resolver());
      return column.isEmpty() ? part : new Assignment((Expression) column.get(), assigned.value());
    }
    return part.mapChildren(child -> resolved(child, target, analyzer));
  }

  /**
   * Whether a condition of a MERGE can stand as it is. By a copy of the source it says which rows
   * have a match, and only saves reading: a source that has other rows each time has no copy, and a
   * copy lacks metadata columns.
   */
  private static boolean isSound(Expression condition) {
    return condition.deterministic()
        && !condition.exists(
            part ->
                part instanceof SubqueryExpression source
                    && source.plan().exists(node -> node.missingInput().nonEmpty()));
  }

  /** The two rows of an update, whose subqueries a projection computes: they may not. */
  private static LogicalPlan computedBelow(LogicalPlan rows) {
    List<Alias> values = new ArrayList<>();
    LogicalPlan over = rows.mapExpressions(value -> {
      if (!SubqueryExpression.hasSubquery(value)) {
        return value;
      }
      values.add(Columns.named(value, "value", NamedExpression.newExprId()));
      return values.get(values.size() - 1).toAttribute();
    });
    NamedExpression[] computed = values.toArray(NamedExpression[]::new);
    return values.isEmpty()
        ? rows
        : over.mapChildren(child -> new Project(appended(child.output(), computed), child));
  }

  private static Set<ExprId> metadataOf(DataSourceV2Relation relation) {
    Set<ExprId> ids = new HashSet<>();
    items(relation.metadataOutput()).forEach(column -> ids.add(column.exprId()));
    items(relation.output()).forEach(column -> ids.remove(column.exprId()));
    return ids;
  }

  private static boolean isReadByStatement(LogicalPlan plan) {
    return plan instanceof DataSourceV2Relation relation
        && relation.table() instanceof RowLevelOperationTable table
        && table.operation() instanceof PennonRowLevelOperation;
  }

  private static LogicalPlan hidden(LogicalPlan plan, LogicalPlan target) {
    if (EliminateSubqueryAliases.apply(target) instanceof DataSourceV2Relation relation
        && relation.table() instanceof PennonTable table) {
      Set<ExprId> metadata = metadataOf(relation);
      return plan.mapExpressions(expression -> hidden(expression, metadata, table.name()));
    }
    return plan;
  }

  private static Expression hidden(Expression expression, Set<ExprId> metadata, String table) {
    if (expression instanceof Assignment assigned
        && hidden(assigned.key(), metadata, table) != assigned.key()) {
      String column = assigned.key().references().toList().head().name();
      throw WorkerFailure.of("METADATA_COLUMN_SET", "table", table, "column", column).raise();
    }
    return expression instanceof AttributeReference column && metadata.contains(column.exprId())
        ? new OuterReference(column)
        : expression.mapChildren(child -> hidden(child, metadata, table));
  }

  private static Expression shown(Expression expression, Set<ExprId> metadata) {
    return expression instanceof OuterReference hidden
            && hidden.e() instanceof AttributeReference column
            && metadata.contains(column.exprId())
        ? column
        : expression.mapChildren(child -> shown(child, metadata));
  }

  /** The plan whose nodes are each given the metadata columns that they name, shown again. */
  private static LogicalPlan supplied(LogicalPlan plan, Set<ExprId> metadata) {
    LogicalPlan below =
        plan.mapChildren(child -> supplied(child, metadata))
            .mapExpressions(expression -> shown(expression, metadata));
    AttributeReference[] missing =
        items(below.missingInput().toSeq()).stream()
            .filter(column -> metadata.contains(column.exprId()))
            .toArray(AttributeReference[]::new);
    return missing.length == 0 ? below : below.mapChildren(child -> with(child, missing));
  }

  /** A plan over the relation that is read, with further columns of it; any other plan as it is. */
  private static LogicalPlan with(LogicalPlan plan, AttributeReference... columns) {
    if (plan instanceof DataSourceV2Relation relation && isReadByStatement(relation)) {
      return relation.copy(
          relation.table(),
          appended(relation.output(), columns),
          relation.catalog(),
          relation.identifier(),
          relation.options(),
          relation.timeTravelSpec());
    }
    if (items(plan.collectLeaves()).stream().noneMatch(RowChangeMetadata::isReadByStatement)) {
      return plan;
    }
    LogicalPlan below = plan.mapChildren(child -> with(child, columns));
    if (below instanceof Project project) {
      return new Project(
          Sequences.<NamedExpression>appended(project.projectList(), columns), project.child());
    }
    return below;
  }
}
