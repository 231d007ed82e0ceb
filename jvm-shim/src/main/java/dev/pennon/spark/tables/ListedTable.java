package dev.pennon.spark.tables;

import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;

/** A table to be listed alone: partitioned by the columns that its transforms take. */
public final class ListedTable extends DescribedTable {
  public ListedTable(PennonTable table) {
    super(table);
  }

  @Override
  public Transform[] partitioning() {
    return Stream.of(super.partitioning())
        .flatMap(transform -> Stream.of(transform.references()))
        // A field of a struct is no column of the list.
        .filter(column -> column.fieldNames().length == 1)
        .map(NamedReference::describe)
        .distinct()
        .map(Expressions::identity)
        .toArray(Transform[]::new);
  }
}
