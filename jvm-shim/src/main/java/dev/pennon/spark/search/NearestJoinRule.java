package dev.pennon.spark.search;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Has Lance find the nearest rows of {@code q JOIN t NEAREST 10 BY DISTANCE …}, of which Spark
 * compares each with each. Its own rewrite comes later, and takes what is left.
 */
public final class NearestJoinRule extends Rule<LogicalPlan> {
  /** By its name: older Sparks have no such class. */
  private static final String JOIN = "NearestByJoin";

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan above =
        SearchedTable.isChangedBy(plan) ? plan : plan.mapChildren(this::apply);
    return above.nodeName().equals(JOIN) && above.resolved()
        ? NearestJoin.rewritten(above)
        : above;
  }
}
