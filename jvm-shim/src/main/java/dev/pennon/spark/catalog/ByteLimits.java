package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The limits that a session sets on what a worker computes by itself, as bytes: of each, the
 * smallest among the catalogs that a query reads.
 */
public final class ByteLimits {
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

  /** Takes the limits of a catalog that the query reads. */
  public void add(String catalog, SQLConf conf) {
    LIMITS.forEach(limit -> smallest.merge(limit, of(catalog, limit, conf), Math::min));
  }

  /** Adds the limits to a request about a query that reads, or that writes what it reads. */
  public void describe(ObjectNode request, boolean isWrite) {
    for (Limit limit : LIMITS) {
      request.put(limit.field(), isWrite && limit.isOfReads() ? 0 : smallest.get(limit));
    }
  }

  private static long of(String catalog, Limit limit, SQLConf conf) {
    String setting = "spark.sql.catalog." + catalog + "." + limit.option();
    String value = conf.getConfString(setting, limit.otherwise());
    try {
      return JavaUtils.byteStringAsBytes(value.strip());
    } catch (NumberFormatException e) {
      throw WorkerFailure.of("BYTES_UNKNOWN", "setting", setting, "value", value).raise();
    }
  }
}
