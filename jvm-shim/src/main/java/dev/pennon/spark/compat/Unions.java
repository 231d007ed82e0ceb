package dev.pennon.spark.compat;

import java.util.Arrays;
import org.apache.spark.sql.internal.SQLConf;

/** {@code UNION ALL} of inputs with equal keys: it has these keys since Spark 4.3, and none before. */
public final class Unions {
  private static final String SETTING = "spark.sql.unionOutputPartitioning";
  private static final boolean ARE_KEYED = areKeyed();

  private Unions() {}

  /** Whether Spark knows of a union's rows that they are grouped as those of its inputs are. */
  public static boolean keepKeys(SQLConf conf) {
    return ARE_KEYED && Boolean.parseBoolean(conf.getConfString(SETTING, "true"));
  }

  private static boolean areKeyed() {
    try {
      Class<?> keys =
          Class.forName("org.apache.spark.sql.catalyst.plans.physical.KeyedPartitioning$");
      return Arrays.stream(keys.getMethods()).anyMatch(method -> method.getName().equals("concat"));
    } catch (ClassNotFoundException e) {
      return false;
    }
  }
}
