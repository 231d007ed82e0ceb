package dev.pennon.spark.worker;

import org.apache.spark.SparkEnv;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Which Python interpreter runs the worker.
 *
 * <p>In order: the environment variable PENNON_PYTHON; on the driver spark.pyspark.driver.python;
 * spark.pyspark.python; the environment variable PYSPARK_PYTHON; python3.
 */
final class WorkerInterpreter {
  static final String REMEDY =
      "Set spark.pyspark.python (or PYSPARK_PYTHON) to a Python interpreter in which the package"
          + " pennon is installed.";

  private WorkerInterpreter() {}

  static String choose() {
    String[] candidates = {
      System.getenv("PENNON_PYTHON"),
      isDriver() ? configured("spark.pyspark.driver.python") : null,
      configured("spark.pyspark.python"),
      System.getenv("PYSPARK_PYTHON"),
    };
    for (String candidate : candidates) {
      if (candidate != null && !candidate.isBlank()) {
        return candidate;
      }
    }
    return "python3";
  }

  private static boolean isDriver() {
    SparkEnv environment = SparkEnv.get();
    return environment == null || "driver".equals(environment.executorId());
  }

  /** The session's value before the application's: both are right places to set it. */
  private static String configured(String key) {
    String ofSession = SQLConf.get().getConfString(key, null);
    if (ofSession != null) {
      return ofSession;
    }
    SparkEnv environment = SparkEnv.get();
    return environment == null ? null : environment.conf().get(key, null);
  }
}
