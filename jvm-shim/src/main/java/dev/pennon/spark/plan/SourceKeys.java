package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;
import static dev.pennon.spark.compat.Trees.conjuncts;
import static dev.pennon.spark.compat.Trees.nodes;

import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.outline.PlanOutline;
import dev.pennon.spark.read.PennonScan;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.ListQuery;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.math.BigInt;

/**
 * Has the workers leave out rows of a large table whose key the small source of a change has not.
 *
 * <p>Spark would get all of the table's rows to look them up. It collects the keys before, so the
 * source is evaluated twice: only one that gives the same rows again may be, for a row that it gave
 * the second time alone would be inserted beside the one that it matches.
 */
final class SourceKeys {
  /** Of a smaller table, than so many times what Spark broadcasts, all rows come as fast. */
  private static final long LEAST_BROADCASTS = 10;

  /** As Spark estimates the source's rows: it holds all of the keys. */
  private static final long MOST_KEYS = 500_000;

  /** Whoever gives the table's rows to such a join gets none of those without a match. */
  private static final Set<String> DROPPING = Set.of("inner", "right", "semi");

  /** Spark's operators that, deterministic as a whole, give the same rows again. */
  private static final Set<String> REPEATABLE =
      Set.of("Filter", "LocalRelation", "Project", "Range", "Union");

  private SourceKeys() {}

  /** The join, its left side's scan under a filter that is given the keys while the query runs. */
  static Join filtering(Join join, long broadcast, SQLConf conf) {
    BigInt size = join.right().stats().sizeInBytes();
    BigInt least = size.max(BigInt.apply(broadcast)).$times(BigInt.apply(LEAST_BROADCASTS));
    long rowSize = 8L + join.right().schema().defaultSize();
    if (conf.dynamicPartitionPruningEnabled()
        && DROPPING.contains(PlanOutline.typeName(join.joinType()))
        && join.condition().isDefined()
        && !join.left().stats().sizeInBytes().$less(least)
        && !size.$greater(BigInt.apply(MOST_KEYS * rowSize))
        && join.right().deterministic()
        && nodes(join.right()).stream().allMatch(SourceKeys::isRepeatable)) {
      for (Expression conjunct : conjuncts(join.condition().get())) {
        LogicalPlan left = conjunct instanceof EqualTo equal ? filtered(join, equal) : null;
        if (left != null) {
          return join.copy(left, join.right(), join.joinType(), join.condition(), join.hint());
        }
      }
    }
    return join;
  }

  private static boolean isRepeatable(LogicalPlan node) {
    boolean isOfFiles =
        node instanceof LogicalRelation files && files.relation() instanceof HadoopFsRelation;
    return node.subqueries().isEmpty()
        && (isOfFiles || PennonScan.of(node) != null || REPEATABLE.contains(node.nodeName()));
  }

  private static LogicalPlan filtered(Join join, EqualTo equal) {
    LogicalPlan left = filtered(join.left(), equal.left(), equal.right(), join.right());
    return left == null ? filtered(join.left(), equal.right(), equal.left(), join.right()) : left;
  }

  /** A table's scan and what stands on it, with the filter; null where it cannot be given one. */
  private static LogicalPlan filtered(
      LogicalPlan plan, Expression column, Expression key, LogicalPlan source) {
    if (!(column instanceof Attribute attribute)
        || !plan.outputSet().contains(attribute)
        || !key.references().subsetOf(source.outputSet())) {
      return null;
    }
    PennonScan scan = PennonScan.of(plan);
    if (scan != null) {
      // A derived key is no column that a worker reads.
      boolean isRead = scan.columns().getFieldIndex(attribute.name()).isDefined();
      return isRead ? new Filter(in(column, key, source), plan) : null;
    }
    boolean passes =
        plan instanceof Filter filter
            ? conjuncts(filter.condition()).stream().noneMatch(part -> isPruned(part, attribute))
            : plan instanceof Project project && isPassed(project, attribute);
    LogicalPlan below = passes ? filtered(plan.children().head(), column, key, source) : null;
    return below == null ? null : plan.withNewChildren(sequence(List.of(below)));
  }

  private static boolean isPruned(Expression condition, Attribute column) {
    return condition instanceof DynamicPruningExpression && condition.references().contains(column);
  }

  private static boolean isPassed(Project project, Attribute column) {
    return items(project.projectList()).stream()
        .anyMatch(item -> item instanceof Attribute && item.exprId().equals(column.exprId()));
  }

  private static Expression in(Expression column, Expression key, LogicalPlan source) {
    NamedExpression named = Columns.named(key, "key", NamedExpression.newExprId());
    LogicalPlan keys = new Project(sequence(List.of(named)), source);
    ListQuery query =
        new ListQuery(keys, empty(), NamedExpression.newExprId(), 1, empty(), Option.empty());
    return new DynamicPruningExpression(new InSubquery(sequence(List.of(column)), query));
  }
}
