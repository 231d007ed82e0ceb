package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.catalog.JoinSettings;
import dev.pennon.spark.fragments.DeriveKeysReply;
import dev.pennon.spark.fragments.DerivedKeys;
import dev.pennon.spark.fragments.FragmentScan;
import dev.pennon.spark.outline.DecidedConditions;
import dev.pennon.spark.outline.PlanOutline;
import dev.pennon.spark.read.PennonScan;
import dev.pennon.spark.worker.Messages;
import java.time.Instant;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper;
import org.apache.spark.sql.catalyst.optimizer.ReplaceCTERefWithRepartition;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.internal.SQLConf;
import scala.PartialFunction;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Lets scans that are joined, grouped or windowed on partition columns output one derived key, so
 * that Spark need not shuffle (docs/joins.md).
 *
 * <p>This side recognises the plan's shape and tracks attributes; which functions have a common
 * reduction, and the key's values, are the worker's. The real conjuncts stay in every join, so a
 * rewritten plan has the same rows. It runs once the scans are built, filters are pushed and
 * subqueries are joins: as one of the session's extra optimizations. Spark optimizes the plan of each
 * subquery beforehand; that is left alone, for what stays a subquery is met again in the query.
 */
public final class DerivedKeyRule extends Rule<LogicalPlan> implements JoinSelectionHelper {
  /** What a session says of the execution, and no option of a store that is named alike. */
  private static final Pattern EXECUTION =
      Pattern.compile("spark\\.sql\\.catalog\\.[^.]+\\.execution(\\..*)?");

  /** A zone that changes its offset in this year does so by the same rules ever after. */
  private static final int LAST_YEAR = 2129;

  /** Who wants to hear what is found in the plans that this thread makes. */
  private static final ThreadLocal<Consumer<JsonNode>> VERDICTS = new ThreadLocal<>();

  private DerivedKeyRule() {}

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
   * @return what Spark wants of an extension that it asks for an optimizer rule
   */
  public static Rule<LogicalPlan> installedIn(SparkSession session) {
    ExperimentalMethods methods =
        ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    List<Rule<LogicalPlan>> rules = new ArrayList<>(items(methods.extraOptimizations()));
    if (rules.stream().noneMatch(DerivedKeyRule.class::isInstance)) {
      rules.add(new DerivedKeyRule());
      methods.extraOptimizations_$eq(sequence(rules));
    }
    return new Unchanged();
  }

  /** Where Spark calls an extension's rule, scans are not built yet, but for those of subqueries. */
  private static final class Unchanged extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return plan;
    }
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    SQLConf conf = SQLConf.get();
    Consumer<JsonNode> listener = VERDICTS.get();
    if (!(plan instanceof Subquery)) {
      JoinSettings.newQuery();
    }
    // A subquery that is optimized by itself may become a join of the query around it; the state of
    // a stream is kept under its grouping keys, which must be the same after every restart.
    if (plan instanceof Subquery || plan.isStreaming()) {
      return plan;
    }
    // Subqueries that Spark has merged name what it merged; it puts that in their place next.
    LogicalPlan whole = ReplaceCTERefWithRepartition.apply(PennonScan.unfiltered(plan));
    LogicalPlan query = whole;
    if (!isSettled(whole)) {
      query =
          conf.v2BucketingEnabled() || listener != null
              ? DecidedConditions.without(
                  MergeSource.hashed(settled(whole, conf, listener), this, conf), conf.cboEnabled())
              : PackedScans.in(whole);
    }
    // What became a part of a fragment is not among them any more.
    Map<LogicalPlan, LogicalPlan> decided = new HashMap<>();
    return query.transformAllExpressions(
        PartialFunction.fromFunction(expression -> inSubquery(expression, decided)));
  }

  /**
   * A subquery that stayed one, with its plan decided about.
   *
   * @param decided what was decided: Spark evaluates equal subqueries once
   */
  private Expression inSubquery(Expression expression, Map<LogicalPlan, LogicalPlan> decided) {
    // The filters of a join by its other side repeat that side's plan.
    if (!(expression instanceof SubqueryExpression subquery) || expression instanceof DynamicPruning) {
      return expression;
    }
    LogicalPlan settled = decided.computeIfAbsent(subquery.plan(), this::apply);
    return settled == subquery.plan() ? subquery : subquery.withNewPlan(settled);
  }

  /** Whether this rule has seen a plan before, for the optimizer repeats it. */
  private static boolean isSettled(LogicalPlan plan) {
    return PennonScan.in(plan).anyMatch(scan -> scan.isDerived() || scan.isPacked())
        || items(plan.collectLeaves()).stream().anyMatch(FragmentScan::isFragment);
  }

  private LogicalPlan settled(LogicalPlan plan, SQLConf conf, Consumer<JsonNode> listener) {
    PlanOutline outline = new PlanOutline(this, conf);
    PlanOutline.Node root = outline.outline(plan);
    if (!outline.hasScans()) {
      return plan;
    }
    if (!outline.asksWorker() && listener == null) {
      return PackedScans.in(plan);
    }
    ObjectNode request = request(outline, conf, plan instanceof Command);
    try {
      DerivedKeys keys = DerivedKeys.ask(request);
      DeriveKeysReply reply = keys.reply();
      if (listener != null) {
        reply.verdicts().forEach(listener);
      }
      if (!conf.v2BucketingEnabled()) {
        return plan;
      }
      LogicalPlan rewritten =
          reply.changesThePlan() ? new DerivedKeyRewrite(keys, outline).rewrite(root) : plan;
      return reply.oneTask() ? OneTask.in(rewritten) : rewritten;
    } catch (Exception e) {
      return UndecidedPlans.kept(plan, e, conf);
    }
  }

  private static ObjectNode request(PlanOutline outline, SQLConf conf, boolean isWrite) {
    ObjectNode request = Messages.request("derive_keys");
    ExecutorSlots.describe(request);
    request.put("max_bytes", conf.filesMaxPartitionBytes()).put("ansi", conf.ansiEnabled());
    request.put("time_zone", conf.sessionLocalTimeZone());
    addZoneOffsets(request.putArray("zone_offsets"), conf.sessionLocalTimeZone());
    request.put("is_write", isWrite).put("rewrites", conf.v2BucketingEnabled());
    // Who executes queries, over all catalogs: which of them are read the worker sees.
    ObjectNode settings = request.putObject("settings");
    CollectionConverters.asJava(conf.getAllConfs()).entrySet().stream()
        .filter(setting -> EXECUTION.matcher(setting.getKey()).matches())
        .forEach(setting -> settings.put(setting.getKey(), setting.getValue()));
    request.set("nodes", outline.message());
    return request;
  }

  /**
   * The last year of which changes are told, the first offset of a zone, then the second since 1970
   * and the offset of each change of it.
   */
  public static void addZoneOffsets(ArrayNode numbers, String zone) {
    ZoneRules rules = DateTimeUtils.getZoneId(zone).getRules();
    numbers.add(LAST_YEAR).add(rules.getOffset(Instant.MIN).getTotalSeconds());
    ZoneOffsetTransition next = rules.nextTransition(Instant.MIN);
    while (next != null && next.getDateTimeBefore().getYear() <= LAST_YEAR) {
      numbers.add(next.toEpochSecond()).add(next.getOffsetAfter().getTotalSeconds());
      next = rules.nextTransition(next.getInstant());
    }
  }
}
