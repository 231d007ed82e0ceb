package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.JoinSettings;
import dev.pennon.spark.fragments.FragmentScan;
import dev.pennon.spark.read.PennonScan;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * Where Spark begins with the physical plan of a query, and where it has decided about shuffles.
 *
 * <p>Between the two {@link JoinSettings} hold. A strategy is asked first, and with the answer of the
 * whole query once per plan, those of its subqueries within; adaptive execution asks again. The rules
 * of its preparation come behind the one that adds shuffles, and without adaptive execution the rules
 * for columns do.
 */
public final class JoinPlanning {
  private JoinPlanning() {}

  /** Adds both ends to a session. */
  public static void injectInto(SparkSessionExtensions extensions) {
    extensions.injectPlannerStrategy(session -> new Begin());
    extensions.injectQueryStagePrepRule(session -> new End());
    extensions.injectColumnar(session -> new EndWithoutAdaption());
  }

  /** Plans nothing. */
  private static final class Begin extends SparkStrategy {
    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
      if (plan instanceof ReturnAnswer) {
        boolean readsByPartitions =
            items(plan.collectLeaves()).stream().anyMatch(JoinPlanning::mayHaveKeys);
        JoinSettings.planning(SQLConf.get(), readsByPartitions);
      }
      return empty();
    }
  }

  private static boolean mayHaveKeys(LogicalPlan leaf) {
    PennonScan scan = PennonScan.of(leaf);
    return scan == null ? FragmentScan.isKeyed(leaf) : !scan.isPacked();
  }

  /** Changes nothing; an adaptive plan was at its end before it is one. */
  private static final class End extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      if (!(plan instanceof AdaptiveSparkPlanExec)) {
        JoinSettings.planned();
      }
      return plan;
    }
  }

  private static final class EndWithoutAdaption extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return new End();
    }
  }
}
