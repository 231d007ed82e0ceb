package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.catalog.Execution;
import dev.pennon.spark.read.DerivedKeyReply;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Lets scans that are joined, grouped or windowed on partition columns output one derived key, so
 * that Spark need not shuffle (design §5).
 *
 * <p>This side recognises the plan's shape and tracks attributes; which functions have a common
 * reduction, and the key's values, are the worker's. The real conjuncts stay in every join, so a
 * rewritten plan has the same rows. It runs once the scans are built, filters are pushed and
 * subqueries are joins: as one of the session's extra optimizations.
 */
public final class DerivedKeyRule extends Rule<LogicalPlan> implements JoinSelectionHelper {
  /** Who wants to hear what is found in the plans that this thread makes. */
  private static final ThreadLocal<Consumer<JsonNode>> VERDICTS = new ThreadLocal<>();

  /** Runs something that plans queries, and hears what is found at their operators. */
  static <T> T listening(Consumer<JsonNode> listener, Supplier<T> planning) {
    VERDICTS.set(listener);
    try {
      return planning.get();
    } finally {
      VERDICTS.remove();
    }
  }

  /**
   * Adds the rule to a session's extra optimizations, once, beside whatever rules its user has.
   *
   * @return the rule; where Spark calls it as an ordinary rule, scans are not built yet and it
   *     changes nothing
   */
  public static Rule<LogicalPlan> installedIn(SparkSession session) {
    DerivedKeyRule rule = new DerivedKeyRule();
    ExperimentalMethods methods =
        ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    List<Rule<LogicalPlan>> rules =
        new ArrayList<>(items(methods.extraOptimizations()));
    if (rules.stream().noneMatch(DerivedKeyRule.class::isInstance)) {
      rules.add(rule);
      methods.extraOptimizations_$eq(sequence(rules));
    }
    return rule;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    SQLConf conf = SQLConf.get();
    Consumer<JsonNode> listener = VERDICTS.get();
    if (!conf.v2BucketingEnabled() && listener == null) {
      return plan;
    }
    if (FragmentRewrite.isOutdatedIn(plan)) {
      return apply(FragmentRewrite.restoredIn(plan));
    }
    if (OutdatedKeys.areIn(plan)) {
      return apply(OutdatedKeys.removedFrom(plan));
    }
    boolean isForWorker =
        conf.v2BucketingEnabled() && !(plan instanceof Subquery subquery && subquery.correlated());
    PlanOutline outline = new PlanOutline(this, conf, isForWorker);
    PlanOutline.Node root = outline.outline(plan);
    if (!outline.hasScans()) {
      return plan;
    }
    if (outline.hasPackedScans() && outline.hasGroupings()) {
      return apply(PackedScans.unpackedIn(plan));
    }
    if (outline.hasOnlyPackedScans()) {
      return plan;
    }
    if (!outline.hasGroupings() && !outline.hasAggregatesForWorker() && listener == null) {
      return PackedScans.in(plan, conf);
    }
    DerivedKeyReply reply = DerivedKeyReply.ask(request(outline, conf));
    if (listener != null) {
      reply.verdicts().forEach(listener);
    }
    if (!conf.v2BucketingEnabled()) {
      return plan;
    }
    LogicalPlan rewritten = plan;
    if (reply.changesThePlan()) {
      FragmentRewrite fragments = new FragmentRewrite(reply, outline, plan);
      rewritten = new DerivedKeyRewrite(reply, outline, fragments, plan).rewrite(root);
    }
    return outline.hasGroupings() || listener != null
        ? rewritten
        : PackedScans.in(rewritten, conf);
  }

  private static ObjectNode request(PlanOutline outline, SQLConf conf) {
    ObjectNode request = Messages.request("derive_keys");
    Execution execution = outline.isForWorker() ? Execution.WORKER : Execution.SPARK;
    request.put("execution", execution.toString());
    request.put(
        "parallelism",
        org.apache.spark.sql.classic.SparkSession.active().leafNodeDefaultParallelism());
    request.put("max_bytes", conf.filesMaxPartitionBytes());
    request.put("ansi", conf.ansiEnabled());
    request.put("time_zone", conf.sessionLocalTimeZone());
    request.set("nodes", outline.message());
    return request;
  }
}
