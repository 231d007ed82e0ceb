package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import dev.pennon.spark.compat.ScanRelations;
import dev.pennon.spark.functions.Surrogate;
import dev.pennon.spark.read.PennonScan;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2ScanPartitioningAndOrdering$;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Takes back keys that were derived in a subquery which is a join by now.
 *
 * <p>Spark optimizes the plan of an IN or EXISTS before it makes a join of it. A key that served an
 * aggregate or a window in there could not serve the join: the query is looked at as a whole.
 */
final class OutdatedKeys {
  private final Set<ExprId> keys = new HashSet<>();

  private OutdatedKeys() {}

  /** Whether a key was derived in another query than this. */
  static boolean areIn(LogicalPlan plan) {
    List<ExprId> query = query(plan);
    for (LogicalPlan leaf : items(plan.collectLeaves())) {
      PennonScan scan = derived(leaf);
      if (scan != null && !scan.derivedIn().equals(query)) {
        return true;
      }
    }
    return false;
  }

  /** Whether a condition compares derived keys: what its join needs is settled. */
  static boolean comparesKeys(Expression condition) {
    return condition instanceof And and
        ? comparesKeys(and.left()) || comparesKeys(and.right())
        : condition instanceof EqualTo equal
            && equal.left() instanceof Attribute left
            && equal.right() instanceof Attribute right
            && left.name().equals(PennonScan.DERIVED_KEY)
            && right.name().equals(PennonScan.DERIVED_KEY);
  }

  /** The plan as it was before any key was derived. */
  static LogicalPlan removedFrom(LogicalPlan plan) {
    LogicalPlan plain = new OutdatedKeys().without(plan);
    return V2ScanPartitioningAndOrdering$.MODULE$.apply(plain);
  }

  /** What tells a query from a subquery that became a part of it: its columns. */
  static List<ExprId> query(LogicalPlan plan) {
    return items(plan.output()).stream().map(Attribute::exprId).toList();
  }

  private static PennonScan derived(LogicalPlan plan) {
    return plan instanceof DataSourceV2ScanRelation relation
            && relation.scan() instanceof PennonScan scan
            && scan.isDerived()
        ? scan
        : null;
  }

  private LogicalPlan without(LogicalPlan plan) {
    PennonScan scan = derived(plan);
    if (scan != null) {
      return scan((DataSourceV2ScanRelation) plan, scan);
    }
    List<LogicalPlan> children = new ArrayList<>();
    items(plan.children()).forEach(child -> children.add(without(child)));
    LogicalPlan node = plan.withNewChildren(sequence(children));
    if (node instanceof Project project) {
      return project.copy(rest(project.projectList()), project.child());
    }
    if (node instanceof Aggregate aggregate) {
      return aggregate.copy(
          rest(aggregate.groupingExpressions()),
          rest(aggregate.aggregateExpressions()),
          aggregate.child(),
          aggregate.hint());
    }
    if (node instanceof Window window) {
      return window.copy(
          window.windowExpressions(),
          rest(window.partitionSpec()),
          window.orderSpec(),
          window.child(),
          window.hint());
    }
    if (node instanceof WindowGroupLimit limit) {
      return limit.copy(
          rest(limit.partitionSpec()),
          limit.orderSpec(),
          limit.rankLikeFunction(),
          limit.limit(),
          limit.child());
    }
    if (node instanceof Join join && join.condition().isDefined()) {
      Option<Expression> condition = Option.apply(rest(join.condition().get()));
      return join.copy(join.left(), join.right(), join.joinType(), condition, join.hint());
    }
    return node;
  }

  private LogicalPlan scan(DataSourceV2ScanRelation relation, PennonScan scan) {
    List<AttributeReference> columns = new ArrayList<>(items(relation.output()));
    keys.add(columns.remove(columns.size() - 1).exprId());
    return ScanRelations.replaced(relation, scan.underived(), sequence(columns), null, List.of());
  }

  /** A condition without the comparison of two keys; null when nothing is left. */
  private Expression rest(Expression condition) {
    if (condition instanceof And and) {
      Expression left = rest(and.left());
      Expression right = rest(and.right());
      if (left == null || right == null) {
        return left == null ? right : left;
      }
      return new And(left, right);
    }
    return condition instanceof EqualTo equal && isKey(equal.left()) && isKey(equal.right())
        ? null
        : condition;
  }

  private <T> Seq<T> rest(Seq<T> expressions) {
    List<T> kept = new ArrayList<>();
    for (T expression : items(expressions)) {
      if (!isKey(expression)) {
        kept.add(expression);
      }
    }
    return sequence(kept);
  }

  /** Whether this is a key, or computes one for a side without partitioning. */
  private boolean isKey(Object expression) {
    if (expression instanceof Alias alias
        && alias.child() instanceof ApplyFunctionExpression call
        && call.function() instanceof Surrogate) {
      keys.add(alias.exprId());
    }
    return (expression instanceof Attribute attribute && keys.contains(attribute.exprId()))
        || (expression instanceof Alias alias && keys.contains(alias.exprId()));
  }
}
