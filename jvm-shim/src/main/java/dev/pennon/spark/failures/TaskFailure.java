package dev.pennon.spark.failures;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.execution.QueryExecutionException;

/**
 * A failure of the worker in a task, in the form that reaches the user as its message alone.
 *
 * <p>Spark takes an error that knows its condition out of "Job aborted due to stage failure", and
 * PySpark shows the text of a QueryExecutionException without the JVM's stack.
 */
public final class TaskFailure extends QueryExecutionException implements SparkThrowable {
  private static final long serialVersionUID = 1L;

  private final String condition;
  private final String sqlState;
  private final HashMap<String, String> parameters;

  public TaskFailure(WorkerFailure failure) {
    super(failure.getMessage(), failure);
    this.condition = failure.condition();
    this.sqlState = failure.sqlState();
    this.parameters = new HashMap<>(failure.parameters());
  }

  @Override
  public String getCondition() {
    return condition;
  }

  @Override
  public String getSqlState() {
    return sqlState;
  }

  @Override
  public Map<String, String> getMessageParameters() {
    return parameters;
  }

  @Override
  public QueryContext[] getQueryContext() {
    return new QueryContext[0];
  }
}
