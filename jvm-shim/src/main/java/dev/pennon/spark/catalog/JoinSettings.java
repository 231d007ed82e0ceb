package dev.pennon.spark.catalog;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.internal.SQLConf;

/** The session settings that joins without a shuffle need and Spark ships off. */
public final class JoinSettings {
  private static final String BUCKETING = "spark.sql.sources.v2.bucketing.";

  /** Spark 4.1's name, which later ones read where their own is not set. */
  private static final String KEYS_SUBSET =
      BUCKETING + "allowJoinKeysSubsetOfPartitionKeys.enabled";

  private static final String NEWER_KEYS_SUBSET =
      BUCKETING + "allowKeysSubsetOfPartitionKeys.enabled";

  /**
   * Spark 4.3 hands a scan's batches to Python functions and reads them again when the answer is
   * there; a task's batches share their memory, so the next one is in it by then.
   */
  private static final String BATCHES_TO_PYTHON =
      "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled";

  private static final Map<String, String> NEEDED =
      Map.of(
          BUCKETING + "enabled", "true",
          BUCKETING + "pushPartValues.enabled", "true",
          BUCKETING + "allowCompatibleTransforms.enabled", "true",
          KEYS_SUBSET, "true",
          BUCKETING + "shuffle.enabled", "true",
          BUCKETING + "partition.filter.enabled", "true",
          BUCKETING + "preserveOrderingOnCoalesce.enabled", "true",
          BATCHES_TO_PYTHON, "false",
          "spark.sql.requireAllClusterKeysForCoPartition", "false");

  /** What makes Spark shuffle although the partitionings have something in common. */
  private static final Map<String, String> FOR_NO_SHUFFLE =
      Map.of(
          BUCKETING + "enabled", "true",
          BUCKETING + "pushPartValues.enabled", "true",
          BUCKETING + "allowCompatibleTransforms.enabled", "true",
          NEWER_KEYS_SUBSET, "true",
          BUCKETING + "shuffle.enabled", "true",
          BUCKETING + "partiallyClusteredDistribution.enabled", "false",
          "spark.sql.requireAllClusterKeysForDistribution", "false",
          "spark.sql.requireAllClusterKeysForCoPartition", "false");

  private JoinSettings() {}

  /**
   * Sets in the current session what the user has not set himself. Done for every table that is
   * loaded: RESET takes away what was set for the one before.
   */
  public static void apply() {
    SQLConf conf = SQLConf.get();
    NEEDED.forEach(
        (key, value) -> {
          if (!isSet(conf, key)) {
            conf.setConfString(key, value);
          }
        });
  }

  /** The settings by which the user keeps Spark from joins without a shuffle, with his values. */
  public static Map<String, String> opposed() {
    SQLConf conf = SQLConf.get();
    Map<String, String> found = new TreeMap<>();
    FOR_NO_SHUFFLE.forEach(
        (key, needed) -> {
          String other = key.equals(NEWER_KEYS_SUBSET) ? KEYS_SUBSET : key;
          String value = conf.getConfString(key, conf.getConfString(other, needed));
          if (!value.equalsIgnoreCase(needed)) {
            found.put(key, value);
          }
        });
    return found;
  }

  private static boolean isSet(SQLConf conf, String key) {
    return conf.contains(key) || (key.equals(KEYS_SUBSET) && conf.contains(NEWER_KEYS_SUBSET));
  }
}
