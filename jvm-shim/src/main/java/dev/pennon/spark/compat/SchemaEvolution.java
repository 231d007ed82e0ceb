package dev.pennon.spark.compat;

/** Whether this Spark asks tables which changes of columns they take. */
public final class SchemaEvolution {
  /** Spark 4.2 and later: a class that implements the interface must not be loaded before. */
  public static final boolean IS_ASKED_FOR = isThere();

  private SchemaEvolution() {}

  private static boolean isThere() {
    try {
      Class.forName("org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution");
      return true;
    } catch (ClassNotFoundException beforeSpark42) {
      return false;
    }
  }
}
