package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import dev.pennon.spark.compat.ScanRelations;
import dev.pennon.spark.read.PennonScan;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2ScanPartitioningAndOrdering$;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Packs the leaves of scans whose partitioning nothing in the query can use.
 *
 * <p>Spark optimizes the plan of an IN or EXISTS before it makes a join of it: what was packed
 * there is unpacked when the join is seen.
 */
final class PackedScans {
  private PackedScans() {}

  static LogicalPlan in(LogicalPlan plan, SQLConf conf) {
    int numTasks = SparkSession.active().leafNodeDefaultParallelism();
    long maxBytes = conf.filesMaxPartitionBytes();
    return replaced(
        plan, scan -> scan.isDerived() || scan.isPacked() ? scan : scan.packed(numTasks, maxBytes));
  }

  /** The plan with the scans that were packed, their partitioning reported again. */
  static LogicalPlan unpackedIn(LogicalPlan plan) {
    LogicalPlan unpacked = replaced(plan, scan -> scan.isPacked() ? scan.unpacked() : scan);
    return V2ScanPartitioningAndOrdering$.MODULE$.apply(unpacked);
  }

  private static LogicalPlan replaced(LogicalPlan plan, UnaryOperator<PennonScan> replacement) {
    if (plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof PennonScan scan) {
      PennonScan other = replacement.apply(scan);
      return other == scan
          ? relation
          : ScanRelations.replaced(relation, other, relation.output(), null, List.of());
    }
    List<LogicalPlan> children = new ArrayList<>();
    items(plan.children())
        .forEach(child -> children.add(replaced(child, replacement)));
    return plan.withNewChildren(sequence(children));
  }
}
