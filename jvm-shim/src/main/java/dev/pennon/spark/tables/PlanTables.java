package dev.pennon.spark.tables;

import static dev.pennon.spark.compat.Sequences.items;

import java.util.Arrays;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.PartialFunction;

/** A plan, its subqueries included, over other tables. */
public final class PlanTables {
  private PlanTables() {}

  /**
   * The plan with other parameters; what is read at a version that the statement names stays.
   *
   * @param other gives what stands for a parameter of an operator
   */
  public static LogicalPlan replaced(
      LogicalPlan plan, BiFunction<LogicalPlan, Object, Object> other) {
    return plan.transformWithSubqueries(
        PartialFunction.fromFunction(node -> withOthers(node, other)));
  }

  private static LogicalPlan withOthers(
      LogicalPlan node, BiFunction<LogicalPlan, Object, Object> other) {
    if (node instanceof DataSourceV2Relation relation && relation.timeTravelSpec().isDefined()) {
      return node;
    }
    Object[] before = items(node.productIterator().toSeq()).toArray();
    Object[] after = Arrays.stream(before).map(parameter -> other.apply(node, parameter)).toArray();
    // A table that notes its scans equals the one that does not.
    boolean isSame = Arrays.equals(before, after, (one, two) -> one == two ? 0 : 1);
    return isSame ? node : node.makeCopy(after);
  }
}
