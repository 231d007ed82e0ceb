package dev.pennon.spark.outline;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;
import static dev.pennon.spark.compat.Trees.conjuncts;
import static dev.pennon.spark.compat.Trees.nodes;

import dev.pennon.spark.compat.ScanRelations;
import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.read.PennonScan;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Takes out of a plan the conditions that all rows of a scan satisfy, as the worker said when it
 * planned the scan, and the columns that nothing else reads.
 *
 * <p>Not when the conditions are pushed: until joins are planned, a filter is how Spark knows that
 * a side is selective.
 */
public final class DecidedConditions {
  private final boolean byValues;
  /** Plans of the scans that a filter by the other side of a join repeats, to reuse its rows. */
  private final Set<String> repeated = new HashSet<>();

  private DecidedConditions(boolean byValues) {
    this.byValues = byValues;
  }

  /**
   * The plan without them.
   *
   * @param byValues whether only conditions that partition values decide go; those that leaves
   *     filter by stay where Spark estimates rows by them
   */
  public static LogicalPlan without(LogicalPlan plan, boolean byValues) {
    DecidedConditions conditions = new DecidedConditions(byValues);
    nodes(plan).forEach(conditions::noteRepeated);
    return conditions.in(plan);
  }

  /** What a filter demands that not all rows of the scan below it satisfy. */
  static List<Expression> undecided(Filter filter) {
    PennonScan scan = PennonScan.of(filter.child());
    return scan == null ? conjuncts(filter.condition()) : undecided(filter, scan, false);
  }

  private static List<Expression> undecided(Filter filter, PennonScan scan, boolean byValues) {
    return conjuncts(filter.condition()).stream()
        .filter(conjunct -> !isSatisfied(scan, conjunct, byValues))
        .toList();
  }

  private void noteRepeated(LogicalPlan plan) {
    if (plan instanceof Filter filter) {
      nodes(filter.condition()).forEach(this::noteRepeated);
    }
  }

  private void noteRepeated(Expression expression) {
    if (expression instanceof DynamicPruningSubquery pruning) {
      PennonScan.in(pruning.buildQuery()).forEach(scan -> repeated.add(scan.token()));
    }
  }

  private LogicalPlan in(LogicalPlan plan) {
    if (plan instanceof Project project && project.child() instanceof Filter filter) {
      LogicalPlan rest = rest(filter);
      if (rest != null) {
        return rest == filter ? plan : narrowed(project, rest);
      }
    }
    LogicalPlan rest = plan instanceof Filter filter ? rest(filter) : null;
    return rest == null ? plan.mapChildren(this::in) : rest;
  }

  /** A filter without what all rows satisfy; itself where that is nothing, null above no scan. */
  private LogicalPlan rest(Filter filter) {
    PennonScan scan = PennonScan.of(filter.child());
    if (scan == null || repeated.contains(scan.token())) {
      return scan == null ? null : filter;
    }
    List<Expression> kept = undecided(filter, scan, byValues);
    if (kept.size() == conjuncts(filter.condition()).size()) {
      return filter;
    }
    return kept.stream()
        .reduce(And::new)
        .<LogicalPlan>map(condition -> new Filter(condition, filter.child()))
        .orElse(filter.child());
  }

  private static boolean isSatisfied(PennonScan scan, Expression condition, boolean byValues) {
    if (SubqueryExpression.hasSubquery(condition)) {
      return false;
    }
    String text = ExpressionText.ofTable(condition, scan.tableColumns());
    return text != null && scan.satisfies(text, byValues);
  }

  /** A projection over a scan, of which it reads no column that nothing uses any more. */
  private static LogicalPlan narrowed(Project project, LogicalPlan rest) {
    DataSourceV2ScanRelation relation =
        (DataSourceV2ScanRelation) (rest instanceof Filter filter ? filter.child() : rest);
    PennonScan scan = (PennonScan) relation.scan();
    AttributeSet used = project.references();
    if (rest instanceof Filter filter) {
      used = used.$plus$plus(filter.references());
    }
    List<Expression> ofScan = new ArrayList<>();
    relation.keyGroupedPartitioning().foreach(keys -> ofScan.addAll(items(keys)));
    relation.ordering().foreach(orders -> ofScan.addAll(items(orders)));
    for (Expression expression : ofScan) {
      used = used.$plus$plus(expression.references());
    }
    StructType columns = new StructType();
    List<AttributeReference> output = new ArrayList<>(items(relation.output()));
    Set<String> tableColumns = scan.tableColumns();
    List<AttributeReference> unused = new ArrayList<>();
    for (int i = 0; i < scan.columns().length(); i++) {
      StructField column = scan.columns().fields()[i];
      AttributeReference attribute = output.get(i);
      if (!used.contains(attribute) && tableColumns.contains(column.name())) {
        unused.add(attribute);
      } else {
        columns = columns.add(column);
      }
    }
    if (unused.isEmpty()) {
      return project.withNewChildren(sequence(List.of(rest)));
    }
    output.removeAll(unused);
    LogicalPlan narrower =
        ScanRelations.narrowed(relation, scan.narrowed(columns), sequence(output));
    return project.withNewChildren(
        sequence(
            List.of(rest instanceof Filter filter ? new Filter(filter.condition(), narrower) : narrower)));
  }
}
