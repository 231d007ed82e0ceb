package dev.pennon.spark.failures;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What went wrong, in the form of the worker's errors: a condition, a message that a user can act
 * on, its parameters and a SQL state.
 *
 * <p>On an executor {@link #raiseInTask} makes it the task's error. On the driver {@link #raise}
 * turns it into an AnalysisException.
 */
public final class WorkerFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final String INTERNAL_STATE = "XX000";
  /** What the shim refuses by itself: by its condition, the text and the SQL state. */
  private static final JsonNode DECLARED = declared();
  private static final Pattern PARAMETER = Pattern.compile("\\{(\\w+)}");
  /** The condition of a worker, or a connection to it, that ended. */
  public static final String LOST = "WORKER_LOST";

  private final String condition;
  private final transient Map<String, String> parameters;
  private final String sqlState;

  public WorkerFailure(
      String condition,
      String message,
      Map<String, String> parameters,
      String sqlState,
      Throwable cause) {
    // What the worker reports happened there: a stack of this JVM would only hide the message.
    super(message, cause, true, cause != null);
    this.condition = condition;
    this.parameters = Map.copyOf(parameters);
    this.sqlState = sqlState;
  }

  /**
   * What the shim itself refuses, with the text that the package has for the condition.
   *
   * @param namesAndValues the parameters that the text names: each name, then its value
   */
  public static WorkerFailure of(String condition, String... namesAndValues) {
    Map<String, String> parameters = new HashMap<>();
    for (int at = 0; at < namesAndValues.length; at += 2) {
      parameters.put(namesAndValues[at], namesAndValues[at + 1]);
    }
    JsonNode declared = DECLARED.get(condition);
    String text =
        PARAMETER
            .matcher(declared.get("template").asText())
            .replaceAll(name -> Matcher.quoteReplacement(parameters.get(name.group(1))));
    String sqlState = declared.get("sql_state").asText();
    return new WorkerFailure(condition, "[" + condition + "] " + text, parameters, sqlState, null);
  }

  private static JsonNode declared() {
    try (InputStream file = WorkerFailure.class.getResourceAsStream("failures.json")) {
      return new ObjectMapper().readTree(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Reads the payload of an error frame, or the {@code error} of a worker that is not ready. */
  public static WorkerFailure fromJson(JsonNode error) {
    String condition = error.path("condition").asText("INTERNAL_ERROR");
    Map<String, String> parameters = new HashMap<>();
    for (var stated : error.path("parameters").properties()) {
      parameters.put(stated.getKey(), stated.getValue().asText());
    }
    String text = error.path("message").asText("The Pennon worker failed without a message.");
    return new WorkerFailure(
        condition,
        text.startsWith("[") ? text : "[" + condition + "] " + text,
        parameters,
        error.path("sqlState").asText(INTERNAL_STATE),
        null);
  }

  /** The worker is gone, or its connection: the request cannot be completed, but may be retried. */
  public static WorkerFailure lost(String why, Throwable cause) {
    return of(LOST, "why", why).causedBy(cause);
  }

  /** The worker could not be started. */
  public static WorkerFailure notStarted(String python, String why, Throwable cause) {
    return of("WORKER_NOT_STARTED", "python", python, "why", why).causedBy(cause);
  }

  /** One of the two sides sent what the other does not understand: never the user's fault. */
  public static WorkerFailure protocol(String why, Throwable cause) {
    return of("WORKER_PROTOCOL", "why", why).causedBy(cause);
  }

  /** The same failure with what led to it, whose stack the log shows; null for nothing. */
  public WorkerFailure causedBy(Throwable cause) {
    return new WorkerFailure(condition, getMessage(), parameters, sqlState, cause);
  }

  public String condition() {
    return condition;
  }

  public Map<String, String> parameters() {
    return parameters == null ? Map.of() : parameters;
  }

  public String sqlState() {
    return sqlState;
  }

  public boolean is(String otherCondition) {
    return condition.equals(otherCondition);
  }

  /**
   * Throws this failure as Spark's exception for user errors, with the message as it stands, from
   * where Java demands an unchecked exception.
   *
   * @return never; declared so that callers can write {@code throw failure.raise()}
   */
  public RuntimeException raise() {
    return sneak(AnalysisExceptions.of(this));
  }

  /**
   * Throws this failure of a task so that the user sees its message alone.
   *
   * @return never; declared so that callers can write {@code throw failure.raiseInTask()}
   */
  public RuntimeException raiseInTask() {
    return sneak(new TaskFailure(this));
  }

  /**
   * Throws an exception as it is from where Java demands an unchecked one.
   *
   * @return never; declared so that callers can write {@code throw WorkerFailure.sneak(e)}
   */
  @SuppressWarnings("unchecked")
  public static <T extends Throwable> RuntimeException sneak(Throwable failure) throws T {
    throw (T) failure;
  }
}
