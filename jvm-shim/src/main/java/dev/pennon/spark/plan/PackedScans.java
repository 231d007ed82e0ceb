package dev.pennon.spark.plan;

import dev.pennon.spark.compat.ScanRelations;
import dev.pennon.spark.read.PennonScan;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** Packs the leaves of scans whose partitioning nothing in the query can use. */
final class PackedScans {
  private PackedScans() {}

  static LogicalPlan in(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof PennonScan scan
        && !(scan.isDerived() || scan.isPacked())) {
      return ScanRelations.replaced(relation, scan.packed(), relation.output(), null, List.of());
    }
    return plan.mapChildren(PackedScans::in);
  }
}
