package dev.pennon.spark.sql;

import dev.pennon.spark.read.PennonScan;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Packs the leaves of scans whose partitioning nothing in the query can use. */
final class PackedScans {
  private PackedScans() {}

  static LogicalPlan in(LogicalPlan plan, SQLConf conf) {
    if (plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof PennonScan scan
        && !scan.isDerived()
        && !scan.isPacked()) {
      int numTasks = SparkSession.active().leafNodeDefaultParallelism();
      return relation.copy(
          relation.relation(),
          scan.packed(numTasks, conf.filesMaxPartitionBytes()),
          relation.output(),
          Option.empty(),
          relation.ordering(),
          relation.pushedFilters(),
          relation.mergeableScan());
    }
    List<LogicalPlan> children = new ArrayList<>();
    CollectionConverters.asJava(plan.children()).forEach(child -> children.add(in(child, conf)));
    return plan.withNewChildren(CollectionConverters.asScala(children).toSeq());
  }
}
