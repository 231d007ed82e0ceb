package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkBuildInfo;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;

/**
 * What a worker is told when it starts, and what it has to answer before anything is asked of it.
 *
 * <p>A jar and a package of different versions would misread each other's messages: both sides
 * compare, and refuse.
 */
final class WorkerStart {
  /** What the memory of a worker is derived from, as Spark spells it; no secrets are among them. */
  private static final List<String> MEMORY_SETTINGS =
      List.of(
          "spark.master",
          "spark.pennon.worker.memory",
          "spark.driver.memory",
          "spark.driver.memoryOverhead",
          "spark.driver.memoryOverheadFactor",
          "spark.driver.minMemoryOverhead",
          "spark.executor.memory",
          "spark.executor.memoryOverhead",
          "spark.executor.memoryOverheadFactor",
          "spark.executor.minMemoryOverhead",
          "spark.executor.pyspark.memory",
          "spark.executor.cores",
          "spark.executor.instances");

  private WorkerStart() {}

  /** The jar's version, as its manifest has it; classes that stand in no jar have none. */
  static String jarVersion() {
    String version = WorkerStart.class.getPackage().getImplementationVersion();
    return version == null ? "unknown" : version;
  }

  /**
   * This JVM as the worker's argument {@code --jvm}.
   *
   * @param retired earlier workers that still work, and hold memory
   */
  static String describeJvm(Collection<Long> retired) {
    ObjectNode jvm = Messages.object();
    jvm.put("jar", jarVersion()).put("protocol", Wire.PROTOCOL);
    jvm.put("spark", SparkBuildInfo.spark_version());
    jvm.put("driver", WorkerInterpreter.isDriver());
    jvm.put("cores", Runtime.getRuntime().availableProcessors());
    jvm.put("heap_bytes", Runtime.getRuntime().maxMemory());
    jvm.put("timeout_seconds", WorkerWatch.timeoutSeconds());
    ArrayNode pids = jvm.putArray("retired");
    retired.forEach(pids::add);
    ObjectNode settings = jvm.putObject("settings");
    SparkEnv environment = SparkEnv.get();
    if (environment != null) {
      SparkConf conf = environment.conf();
      for (String key : MEMORY_SETTINGS) {
        String value = conf.get(key, null);
        if (value != null) {
          settings.put(key, value);
        }
      }
    }
    return Messages.print(jvm);
  }

  /** Fails unless the worker's first line says that it is ready, and of this jar's version. */
  static void check(JsonNode ready, String python) {
    if (!ready.path("ready").asBoolean()) {
      throw WorkerFailure.fromJson(ready.path("error"));
    }
    String protocol = ready.path("protocol").asText("unknown");
    String version = ready.path("version").asText("unknown");
    if (!protocol.equals(Wire.PROTOCOL) || !version.equals(jarVersion())) {
      throw differs(python, version, protocol);
    }
  }

  private static WorkerFailure differs(String python, String version, String protocol) {
    return WorkerFailure.of(
        "VERSIONS_DIFFER",
        "58000",
        Map.of("python", python, "package", version, "jar", jarVersion()),
        "Cannot use the package pennon of %s: it is version %s (protocol %s), and the jar is "
            + "version %s (protocol %s). Install the package of the jar's version there, or use the "
            + "jar inside that package.",
        python, version, protocol, jarVersion(), Wire.PROTOCOL);
  }
}
