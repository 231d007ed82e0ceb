package dev.pennon.spark.catalog;

import java.util.Map;
import org.apache.spark.sql.internal.SQLConf;

/** The session settings that joins without a shuffle need and Spark ships off. */
public final class JoinSettings {
  private static final String BUCKETING = "spark.sql.sources.v2.bucketing.";

  private static final Map<String, String> NEEDED =
      Map.of(
          BUCKETING + "enabled", "true",
          BUCKETING + "pushPartValues.enabled", "true",
          BUCKETING + "allowCompatibleTransforms.enabled", "true",
          BUCKETING + "allowKeysSubsetOfPartitionKeys.enabled", "true",
          BUCKETING + "allowJoinKeysSubsetOfPartitionKeys.enabled", "true",
          BUCKETING + "shuffle.enabled", "true",
          BUCKETING + "partition.filter.enabled", "true",
          BUCKETING + "preserveOrderingOnCoalesce.enabled", "true",
          "spark.sql.requireAllClusterKeysForCoPartition", "false");

  private JoinSettings() {}

  /** Sets in the current session what the user has not set himself. */
  public static void apply() {
    SQLConf conf = SQLConf.get();
    NEEDED.forEach(
        (key, value) -> {
          if (!conf.contains(key)) {
            conf.setConfString(key, value);
          }
        });
  }
}
