package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import dev.pennon.spark.read.FragmentScan;
import dev.pennon.spark.read.PennonScan;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Lets every scan of a small query have one partition, and Spark know of it: then no operator above
 * needs an exchange.
 */
final class OneTask {
  private OneTask() {}

  static LogicalPlan in(LogicalPlan plan, SQLConf conf) {
    if (plan instanceof DataSourceV2ScanRelation relation) {
      LogicalPlan read =
          relation.scan() instanceof PennonScan ? PackedScans.in(relation, conf) : relation;
      boolean isOurs =
          relation.scan() instanceof PennonScan || relation.scan() instanceof FragmentScan;
      // Not a shuffle: Spark reports no single partition of a scan, but of what is coalesced to one.
      return isOurs ? new Repartition(1, false, read) : relation;
    }
    List<LogicalPlan> children = new ArrayList<>();
    items(plan.children()).forEach(child -> children.add(in(child, conf)));
    return plan.withNewChildren(sequence(children));
  }
}
