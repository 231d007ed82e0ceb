package dev.pennon.spark.catalog;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.stream.Stream;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The settings that joins without a shuffle need and Spark ships off.
 *
 * <p>They hold while Spark makes the physical plan of a query that reads Pennon's tables by their
 * partitions, and for as long as any thread makes one in the session; then the session is as it was.
 * What the user has set himself stays. No row depends on any of them.
 */
public final class JoinSettings {
  private static final String BUCKETING = "spark.sql.sources.v2.bucketing.";

  /** Spark 4.1's name, which later ones read where their own is not set. */
  private static final String KEYS_SUBSET =
      BUCKETING + "allowJoinKeysSubsetOfPartitionKeys.enabled";

  private static final String NEWER_KEYS_SUBSET =
      BUCKETING + "allowKeysSubsetOfPartitionKeys.enabled";

  private static final Map<String, String> NEEDED =
      Map.of(
          BUCKETING + "enabled", "true",
          BUCKETING + "pushPartValues.enabled", "true",
          BUCKETING + "allowCompatibleTransforms.enabled", "true",
          BUCKETING + "shuffle.enabled", "true",
          "spark.sql.requireAllClusterKeysForCoPartition", "false");

  /** What is set beside these. */
  private static final Map<String, String> SET_BESIDE =
      Map.of(
          KEYS_SUBSET, "true",
          BUCKETING + "partition.filter.enabled", "true",
          BUCKETING + "preserveOrderingOnCoalesce.enabled", "true");

  /** What makes Spark shuffle as well, although the partitionings have something in common. */
  private static final Map<String, String> FOR_NO_SHUFFLE =
      Map.of(
          NEWER_KEYS_SUBSET, "true",
          BUCKETING + "partiallyClusteredDistribution.enabled", "false",
          "spark.sql.requireAllClusterKeysForDistribution", "false");

  /** The plans that this thread makes, the one within the other, with the settings they changed. */
  private static final ThreadLocal<Deque<Optional<SQLConf>>> PLANNING =
      ThreadLocal.withInitial(ArrayDeque::new);

  private static final Map<SQLConf, Changed> CHANGED = new WeakHashMap<>();

  private JoinSettings() {}

  /** What was changed in a session, and for how many plans. */
  private static final class Changed {
    private final Map<String, String> made = new HashMap<>();
    private int plans;
  }

  /** This thread begins with a physical plan; every call has its {@link #planned}. */
  public static void planning(SQLConf conf, boolean isNeeded) {
    if (isNeeded) {
      apply(conf);
    }
    PLANNING.get().push(isNeeded ? Optional.of(conf) : Optional.empty());
  }

  /** This thread has made the physical plan that it began with last, if there is one. */
  public static void planned() {
    Optional<SQLConf> last = PLANNING.get().poll();
    if (last != null) {
      last.ifPresent(JoinSettings::restore);
    }
  }

  /** This thread begins with another query: plans that it gave up are forgotten. */
  public static void newQuery() {
    while (!PLANNING.get().isEmpty()) {
      planned();
    }
  }

  private static void apply(SQLConf conf) {
    synchronized (CHANGED) {
      Changed changed = CHANGED.computeIfAbsent(conf, session -> new Changed());
      changed.plans++;
      Stream.of(NEEDED, SET_BESIDE).forEach(settings -> settings.forEach(
          (key, value) -> {
            if (!isSet(conf, key)) {
              conf.setConfString(key, value);
              changed.made.put(key, value);
            }
          }));
    }
  }

  private static void restore(SQLConf conf) {
    synchronized (CHANGED) {
      Changed changed = CHANGED.get(conf);
      if (--changed.plans > 0) {
        return;
      }
      changed.made.forEach(
          (key, value) -> {
            if (value.equals(conf.getConfString(key, null))) {
              conf.unsetConf(key);
            }
          });
      CHANGED.remove(conf);
    }
  }

  /** The settings by which the user keeps Spark from joins without a shuffle, with his values. */
  public static Map<String, String> opposed() {
    SQLConf conf = SQLConf.get();
    Map<String, String> opposed = new TreeMap<>();
    Stream.of(NEEDED, FOR_NO_SHUFFLE).forEach(settings -> settings.forEach(
        (key, needed) -> {
          String other = key.equals(NEWER_KEYS_SUBSET) ? KEYS_SUBSET : key;
          String value = conf.getConfString(key, conf.getConfString(other, needed));
          if (!value.equalsIgnoreCase(needed)) {
            opposed.put(key, value);
          }
        }));
    return opposed;
  }

  private static boolean isSet(SQLConf conf, String key) {
    return conf.contains(key) || (key.equals(KEYS_SUBSET) && conf.contains(NEWER_KEYS_SUBSET));
  }
}
