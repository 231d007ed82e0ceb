package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.failures.WorkerFailure;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Locale;
import java.util.regex.Pattern;
import org.apache.spark.SparkBuildInfo;
import org.apache.spark.SparkEnv;
import org.apache.spark.util.Utils;
import scala.Tuple2;

/**
 * What a worker is told when it starts, and what it has to answer before anything is asked of it.
 *
 * <p>A jar and a package of different versions would misread each other's messages: both sides
 * compare, and refuse.
 */
final class WorkerStart {
  /** Whose a worker is, and what its memory is derived from; no secrets are among them. */
  private static final Pattern SETTINGS =
      Pattern.compile(
          "spark\\.(master|app\\.id|pennon\\.worker\\.memory|executor\\.(cores|instances)"
              + "|(driver|executor)\\.(pyspark\\.memory|memory\\w*|minMemory\\w*))");

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
    jvm.put("jar", jarVersion()).put("language", Locale.getDefault().getLanguage());
    jvm.put("spark", SparkBuildInfo.spark_version()).put("user", Utils.getCurrentUserName());
    jvm.put("driver", WorkerInterpreter.isDriver()).put("protocol", Wire.PROTOCOL);
    jvm.put("cores", Runtime.getRuntime().availableProcessors());
    jvm.put("heap_bytes", Runtime.getRuntime().maxMemory());
    jvm.put("timeout_seconds", WorkerWatch.timeoutSeconds());
    jvm.put("temporary", System.getProperty("java.io.tmpdir"));
    retired.forEach(jvm.putArray("retired")::add);
    ObjectNode settings = jvm.putObject("settings");
    SparkEnv environment = SparkEnv.get();
    if (environment != null) {
      for (Tuple2<String, String> setting : environment.conf().getAll()) {
        if (SETTINGS.matcher(setting._1()).matches()) {
          settings.put(setting._1(), setting._2());
        }
      }
    }
    return Messages.print(jvm);
  }

  /** The socket of a worker whose first line says that it is ready, and of this jar's version. */
  static Path socketOf(JsonNode ready, String python) {
    if (!ready.path("ready").asBoolean()) {
      throw WorkerFailure.fromJson(ready.path("error"));
    }
    String protocol = ready.path("protocol").asText("unknown");
    String version = ready.path("version").asText("unknown");
    if (!protocol.equals(Wire.PROTOCOL) || !version.equals(jarVersion())) {
      throw WorkerFailure.of(
          "VERSIONS_DIFFER",
          "interpreter", python,
          "package", version + " (protocol " + protocol + ")",
          "jar", jarVersion() + " (protocol " + Wire.PROTOCOL + ")");
    }
    return Path.of(ready.path("socket").asText());
  }
}
