package dev.pennon.spark.compat;

import org.apache.spark.sql.connector.catalog.Table;

/** Whether this Spark asks tables which changes of columns they take. */
public final class SchemaEvolution {
  /** Spark 4.2 and later: a class that implements the interface must not be loaded before. */
  public static final boolean IS_ASKED_FOR =
      Table.class.getResource("SupportsSchemaEvolution.class") != null;

  private SchemaEvolution() {}
}
