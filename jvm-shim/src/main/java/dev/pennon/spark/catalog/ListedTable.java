package dev.pennon.spark.catalog;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** A table to be listed alone: partitioned by the columns that its transforms take. */
public final class ListedTable implements Table {
  private final PennonTable table;

  public ListedTable(PennonTable table) {
    this.table = table;
  }

  @Override
  public String name() {
    return table.name();
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    return table.schema();
  }

  @Override
  public Transform[] partitioning() {
    Map<String, Transform> byColumn = new LinkedHashMap<>();
    for (Transform transform : table.partitioning()) {
      for (NamedReference column : transform.references()) {
        // A field of a struct is no column of the list.
        if (column.fieldNames().length == 1) {
          byColumn.put(column.fieldNames()[0], Expressions.identity(column.describe()));
        }
      }
    }
    return byColumn.values().toArray(Transform[]::new);
  }

  @Override
  public Map<String, String> properties() {
    return table.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }
}
