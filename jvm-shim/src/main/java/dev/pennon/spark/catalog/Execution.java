package dev.pennon.spark.catalog;

import dev.pennon.spark.worker.WorkerFailure;
import java.util.Locale;
import org.apache.spark.sql.internal.SQLConf;

/** Who executes joins and aggregates of a catalog's tables, partition by partition. */
public enum Execution {
  WORKER,
  SPARK;

  private static final String OPTION = "execution";

  /** What the session says of a catalog; the workers where it says nothing. */
  public static Execution of(String catalog, SQLConf conf) {
    return parsed(catalog, conf.getConfString(setting(catalog), WORKER.name()));
  }

  private static String setting(String catalog) {
    return "spark.sql.catalog." + catalog + "." + OPTION;
  }

  private static Execution parsed(String catalog, String value) {
    for (Execution each : values()) {
      if (each.name().equalsIgnoreCase(value.strip())) {
        return each;
      }
    }
    throw WorkerFailure.of("EXECUTION_UNKNOWN", "setting", setting(catalog), "value", value).raise();
  }

  /** As users write it. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
