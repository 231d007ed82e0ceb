package dev.pennon.spark.worker;

import java.nio.file.Path;
import java.util.stream.Stream;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Which Python interpreter runs the worker.
 *
 * <p>In order: the environment variable PENNON_PYTHON; on the driver spark.pyspark.driver.python and
 * the environment variable PYSPARK_DRIVER_PYTHON; spark.pyspark.python; the environment variable
 * PYSPARK_PYTHON; python3. A relative path starts at the working folder of the JVM, which is where
 * Spark unpacks {@code spark.archives} for an executor.
 */
public final class WorkerInterpreter {
  private WorkerInterpreter() {}

  static String choose() {
    return first(
        System.getenv("PENNON_PYTHON"),
        isDriver() ? configured("spark.pyspark.driver.python") : null,
        isDriver() ? interpreterOnly(System.getenv("PYSPARK_DRIVER_PYTHON")) : null,
        ofTasks());
  }

  /** The interpreter of PySpark's own processes beside executors. */
  public static String ofTasks() {
    return first(configured("spark.pyspark.python"), System.getenv("PYSPARK_PYTHON"), "python3");
  }

  private static String first(String... names) {
    return Stream.of(names).filter(it -> it != null && !it.isBlank()).findFirst().orElseThrow();
  }

  /** A driver's "Python" may be a shell around one, as jupyter and ipython are. */
  private static String interpreterOnly(String program) {
    if (program == null || program.isBlank()) {
      return null;
    }
    String name = Path.of(program).getFileName().toString();
    return name.startsWith("python") || name.startsWith("pypy") ? program : null;
  }

  static boolean isDriver() {
    SparkEnv environment = SparkEnv.get();
    return environment == null || "driver".equals(environment.executorId());
  }

  /** The session's value before the application's: both are right places to set it. */
  private static String configured(String key) {
    SparkEnv environment = SparkEnv.get();
    String ofApplication = environment == null ? null : environment.conf().get(key, null);
    return SQLConf.get().getConfString(key, ofApplication);
  }
}
