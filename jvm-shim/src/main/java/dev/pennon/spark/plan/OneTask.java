package dev.pennon.spark.plan;

import dev.pennon.spark.fragments.FragmentScan;
import dev.pennon.spark.read.PennonScan;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;

/**
 * Lets every scan of a small query have one partition, and Spark know of it: then no operator above
 * needs an exchange.
 */
final class OneTask {
  private OneTask() {}

  static LogicalPlan in(LogicalPlan plan) {
    // Not a shuffle: Spark reports no single partition of a scan, but of what is coalesced to one.
    return isRead(plan)
        ? new Repartition(1, false, PackedScans.in(plan))
        : plan.mapChildren(OneTask::in);
  }

  /** A scan of ours under what Spark reads it with: filters at run time have to stay next to it. */
  private static boolean isRead(LogicalPlan plan) {
    return PennonScan.of(plan) != null || FragmentScan.isFragment(plan)
        || (plan instanceof Filter || plan instanceof Project) && isRead(plan.children().head());
  }
}
