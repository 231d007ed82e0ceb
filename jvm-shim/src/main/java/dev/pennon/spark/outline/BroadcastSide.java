package dev.pennon.spark.outline;

import org.apache.spark.sql.catalyst.optimizer.BuildLeft$;
import org.apache.spark.sql.catalyst.optimizer.BuildRight$;
import org.apache.spark.sql.catalyst.optimizer.BuildSide;
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/** The side of a join that Spark is going to broadcast under some settings. */
record BroadcastSide(JoinSelectionHelper spark, SQLConf conf) {
  /** That side; null where Spark shuffles, or has to. */
  BuildSide of(Join join) {
    Option<BuildSide> hinted = spark.getBroadcastBuildSide(join, true, conf);
    if (hinted.isDefined()) {
      return hinted.get();
    }
    if (join.hint().leftHint().isDefined() || join.hint().rightHint().isDefined()) {
      return null;
    }
    Option<BuildSide> small = spark.getBroadcastBuildSide(join, false, conf);
    return small.isDefined() ? small.get() : withoutKeys(join);
  }

  /**
   * The side that Spark broadcasts where no expressions of both sides are equated: the one whose
   * rows need no partner. An inner join is a product then, a full one keeps neither side in place.
   */
  private static BuildSide withoutKeys(Join join) {
    if (ExtractEquiJoinKeys$.MODULE$.unapply(join).isDefined()) {
      return null;
    }
    return switch (PlanOutline.typeName(join.joinType())) {
      case "left", "semi", "anti", "existence" -> BuildRight$.MODULE$;
      case "right" -> BuildLeft$.MODULE$;
      default -> null;
    };
  }
}
