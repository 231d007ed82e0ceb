package dev.pennon.spark.catalog;

import dev.pennon.spark.worker.WorkerFailure;
import java.util.Map;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.internal.SQLConf;

/** The limits that a session sets on what a worker computes by itself, as bytes. */
public final class ByteLimits {
  private static final String ONE_TASK = "execution.oneTaskBytes";
  private static final String ONE_EXECUTOR = "execution.oneExecutorBytes";
  private static final String REPLICATED = "execution.replicatedBytes";

  private ByteLimits() {}

  /** The most bytes of all inputs of a query that one task computes. */
  public static long oneTask(String catalog, SQLConf conf) {
    return of(catalog, ONE_TASK, "16m", conf);
  }

  /** The most bytes of all inputs of a query that one executor computes with all of its cores. */
  public static long oneExecutor(String catalog, SQLConf conf) {
    return of(catalog, ONE_EXECUTOR, "4g", conf);
  }

  /** The most bytes of the inputs of a join's side that each worker evaluates for itself. */
  public static long replicated(String catalog, SQLConf conf) {
    return of(catalog, REPLICATED, "64m", conf);
  }

  private static long of(String catalog, String option, String otherwise, SQLConf conf) {
    String setting = "spark.sql.catalog." + catalog + "." + option;
    String value = conf.getConfString(setting, otherwise);
    try {
      return JavaUtils.byteStringAsBytes(value.strip());
    } catch (NumberFormatException e) {
      throw WorkerFailure.of(
              "BYTES_UNKNOWN",
              "22023",
              Map.of("setting", setting, "value", value),
              "Cannot use %s = %s: it is no number of bytes. Set it to one, such as 64m or 0, or "
                  + "unset it.",
              setting, value)
          .raise();
    }
  }
}
