package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.internal.SQLConf;

/**
 * What a session says of the execution of a query that reads tables of some catalogs: whether the
 * workers take part, and how many bytes one of them computes by itself. Of several catalogs all
 * have to leave it to the workers, and the smallest limit holds.
 */
public final class ExecutionSettings {
  private static final String EXECUTION = "execution";

  /**
   * One limit.
   *
   * @param field its name in the message
   * @param isOfReads whether what is written is never computed so
   */
  private record Limit(String option, String field, String otherwise, boolean isOfReads) {}

  private static final List<Limit> LIMITS =
      List.of(
          // Of all inputs of a query, for one task to compute it.
          new Limit("execution.oneTaskBytes", "one_task_bytes", "16m", true),
          // Of all inputs of a query, for one executor to compute it with all of its cores.
          new Limit("execution.oneExecutorBytes", "one_executor_bytes", "4g", true),
          // Of the inputs of a join's side, for each worker to evaluate it for itself.
          new Limit("execution.replicatedBytes", "replicated_bytes", "64m", false));

  private final Map<Limit, Long> smallest = new HashMap<>();
  private boolean isForWorker;

  public ExecutionSettings(boolean isForWorker) {
    this.isForWorker = isForWorker;
  }

  /** What the session says of a catalog; the workers where it says nothing. */
  public static boolean isForWorker(String catalog, SQLConf conf) {
    String value = conf.getConfString(setting(catalog, EXECUTION), "worker");
    return switch (value.strip().toLowerCase(Locale.ROOT)) {
      case "worker" -> true;
      case "spark" -> false;
      default ->
          throw WorkerFailure.of(
                  "EXECUTION_UNKNOWN", "setting", setting(catalog, EXECUTION), "value", value)
              .raise();
    };
  }

  /** Takes on what is said of a catalog that the query reads. */
  public void add(String catalog, SQLConf conf) {
    isForWorker &= isForWorker(catalog, conf);
    LIMITS.forEach(limit -> smallest.merge(limit, of(catalog, limit, conf), Math::min));
  }

  public boolean isForWorker() {
    return isForWorker;
  }

  /** Adds all of it to a request about a query that reads, or that writes what it reads. */
  public void describe(ObjectNode request, boolean isWrite) {
    request.put(EXECUTION, isForWorker ? "worker" : "spark");
    for (Limit limit : LIMITS) {
      request.put(limit.field(), isWrite && limit.isOfReads() ? 0 : smallest.get(limit));
    }
  }

  private static long of(String catalog, Limit limit, SQLConf conf) {
    String setting = setting(catalog, limit.option());
    String value = conf.getConfString(setting, limit.otherwise());
    try {
      return JavaUtils.byteStringAsBytes(value.strip());
    } catch (NumberFormatException e) {
      throw WorkerFailure.of("BYTES_UNKNOWN", "setting", setting, "value", value).raise();
    }
  }

  private static String setting(String catalog, String option) {
    return "spark.sql.catalog." + catalog + "." + option;
  }
}
