package dev.pennon.spark.tables;

import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.worker.SecretText;
import java.util.Optional;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;

/**
 * A statement that is run again because rows it is about were moved to other partitions before it
 * could commit.
 *
 * <p>Nothing of it is visible then. Its analyzed plan, which Spark keeps while it is executed, is
 * planned once more over the table as it is now, from within the commit that was refused: when that
 * returns, what Spark waits for is done.
 */
final class RepeatedStatement {
  private static final String ROWS_MOVED = "ROWS_MOVED";
  private static final int ATTEMPTS = 20;
  private static final ThreadLocal<Boolean> IS_REPEATED = ThreadLocal.withInitial(() -> false);

  private RepeatedStatement() {}

  /**
   * Runs the statement again that a refused commit belongs to, until it is made.
   *
   * @param refusal why the commit was refused
   * @param token the worker's description of the table that it was made against
   * @param clear removes what the refused commit would have made visible
   * @throws WorkerFailure the refusal, where the statement is not to be run again
   */
  static void after(WorkerFailure refusal, SecretText token, Runnable clear) {
    Optional<QueryExecution> statement = executed();
    if (!refusal.is(ROWS_MOVED) || IS_REPEATED.get() || statement.isEmpty()) {
      throw refusal;
    }
    clear.run();
    IS_REPEATED.set(true);
    try {
      runUntilMade(statement.get().analyzed(), token, refusal);
    } finally {
      IS_REPEATED.remove();
    }
  }

  private static void runUntilMade(LogicalPlan statement, SecretText token, WorkerFailure refusal) {
    for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
      LogicalPlan renewed = RenewedPlan.of(statement, token).orElseThrow(() -> refusal);
      try {
        Dataset.ofRows(SparkSession.active(), renewed);
        return;
      } catch (Exception failure) { // Scala declares none of what it throws
        if (attempt == ATTEMPTS || !isOfMovedRows(failure)) {
          throw WorkerFailure.<RuntimeException>sneak(failure);
        }
      }
    }
  }

  private static boolean isOfMovedRows(Throwable failure) {
    return failure != null
        && (failure instanceof WorkerFailure known && known.is(ROWS_MOVED)
            || isOfMovedRows(failure.getCause()));
  }

  /** The command that this thread executes; what a stream executes is none. */
  static Optional<QueryExecution> executed() {
    return Optional.ofNullable(
            SparkSession.active().sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY()))
        .map(id -> SQLExecution.getQueryExecution(Long.parseLong(id)))
        .filter(it -> it.analyzed() instanceof Command);
  }
}
