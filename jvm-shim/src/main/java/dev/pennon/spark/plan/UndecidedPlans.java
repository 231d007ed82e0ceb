package dev.pennon.spark.plan;

import dev.pennon.spark.failures.WorkerFailure;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Queries that Spark executes as it planned them, because nothing could be decided about them.
 *
 * <p>What the optimizer rule does makes a query faster and never other: a failure in it is no reason
 * to fail the query. Tests want to see it, and set {@value #RETHROW}.
 */
public final class UndecidedPlans {
  static final String RETHROW = "spark.pennon.optimizer.rethrow";

  private static final Logger LOG = LoggerFactory.getLogger(UndecidedPlans.class);
  private static final AtomicLong COUNT = new AtomicLong();

  private UndecidedPlans() {}

  /** How many plans of this JVM were kept as they were after a failure. */
  public static long count() {
    return COUNT.get();
  }

  static LogicalPlan kept(LogicalPlan plan, Exception failure, SQLConf conf) {
    if (Thread.currentThread().isInterrupted()
        || Boolean.parseBoolean(conf.getConfString(RETHROW, "false"))) {
      throw WorkerFailure.<RuntimeException>sneak(failure);
    }
    LOG.warn(
        "Spark executes a query as it planned it: how the workers could help was not found out"
            + " ({} so far): {}",
        COUNT.incrementAndGet(),
        failure.getMessage());
    LOG.debug("Why it was not found out", failure);
    return plan;
  }
}
