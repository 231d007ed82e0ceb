package dev.pennon.spark.compat;

import static dev.pennon.spark.compat.Sequences.items;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * Tells adaptive execution again which relation a scan is of.
 *
 * <p>Spark 4.1 copies the scans below a storage partitioned join without that link, and fails on
 * "assertion failed" when it makes a stage of one of them alone, as of the small side of a
 * broadcast. Later versions keep the link: there is nothing to do then.
 */
public final class ScanLinks extends Rule<SparkPlan> {
  @Override
  public SparkPlan apply(SparkPlan plan) {
    link(plan, null);
    return plan;
  }

  private static void link(SparkPlan plan, LogicalPlan around) {
    LogicalPlan known = plan.logicalLink().isDefined() ? plan.logicalLink().get() : around;
    if (plan.logicalLink().isEmpty() && plan instanceof BatchScanExec scan && around != null) {
      List<LogicalPlan> relations = relationsOf(scan, around);
      if (relations.size() == 1) {
        scan.setLogicalLink(relations.get(0));
      }
    }
    items(plan.children()).forEach(child -> link(child, known));
  }

  private static List<LogicalPlan> relationsOf(BatchScanExec scan, LogicalPlan around) {
    List<LogicalPlan> relations = new ArrayList<>();
    for (LogicalPlan leaf : items(around.collectLeaves())) {
      if (leaf instanceof DataSourceV2ScanRelation && leaf.outputSet().equals(scan.outputSet())) {
        relations.add(leaf);
      }
    }
    return relations;
  }
}
