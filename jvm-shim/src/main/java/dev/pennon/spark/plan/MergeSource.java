package dev.pennon.spark.plan;

import dev.pennon.spark.read.PennonScan;
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SHUFFLE_HASH$;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.internal.SQLConf;
import scala.Some;
import scala.math.BigInt;

/**
 * Has the small source of a MERGE hashed and the table's rows looked up in it, in no order, those
 * that may have a match.
 *
 * <p>A MERGE that inserts keeps all rows of its source, so Spark cannot broadcast them, and sorts
 * the whole table to find the few rows that have a match.
 */
final class MergeSource {
  /** A hash table does not spill: it is at most what Spark broadcasts, this many times. */
  private static final long MOST_BROADCASTS = 4;

  private MergeSource() {}

  /** The plan with the hint at the join of its statement, if it is one that it holds for. */
  static LogicalPlan hashed(LogicalPlan plan, JoinSelectionHelper spark, SQLConf conf) {
    return plan instanceof WriteDelta ? below(plan, spark, conf) : plan;
  }

  private static LogicalPlan below(LogicalPlan plan, JoinSelectionHelper spark, SQLConf conf) {
    return plan.mapChildren(
        child -> child instanceof Join join ? joined(join, spark, conf) : below(child, spark, conf));
  }

  private static Join joined(Join join, JoinSelectionHelper spark, SQLConf conf) {
    long broadcast = Math.max(conf.autoBroadcastJoinThreshold(), 0);
    BigInt source = join.right().stats().sizeInBytes();
    if (PennonScan.in(join.left()).findAny().isEmpty()
        || source.$greater(BigInt.apply(MOST_BROADCASTS * broadcast))) {
      return join;
    }
    boolean isOpen = join.hint().rightHint().isEmpty();
    boolean isHinted = isOpen && spark.getBroadcastBuildSide(join, false, conf).isEmpty();
    return SourceKeys.filtering(isHinted ? hinted(join) : join, broadcast, conf);
  }

  private static Join hinted(Join join) {
    HintInfo hashed = new HintInfo(new Some<>(SHUFFLE_HASH$.MODULE$));
    return join.copy(
        join.left(),
        join.right(),
        join.joinType(),
        join.condition(),
        new JoinHint(join.hint().leftHint(), new Some<>(hashed)));
  }
}
