package dev.pennon.spark.catalog;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;

/** A table to be listed alone: partitioned by the columns that its transforms take. */
public final class ListedTable extends PennonTable {
  public ListedTable(PennonTable table) {
    super(table);
  }

  @Override
  public Transform[] partitioning() {
    Map<String, Transform> byColumn = new LinkedHashMap<>();
    for (Transform transform : super.partitioning()) {
      for (NamedReference column : transform.references()) {
        // A field of a struct is no column of the list.
        if (column.fieldNames().length == 1) {
          byColumn.put(column.fieldNames()[0], Expressions.identity(column.describe()));
        }
      }
    }
    return byColumn.values().toArray(Transform[]::new);
  }
}
