package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.worker.Messages;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A column that a table has beside its own: read where it is named, left out of {@code *}. */
record HiddenColumn(String name, DataType dataType, boolean isNullable, String comment)
    implements MetadataColumn {

  /** Reads a schema in Spark's JSON; without one there are no such columns. */
  static List<MetadataColumn> all(JsonNode schema) {
    if (schema.isEmpty()) {
      return List.of();
    }
    StructType columns = (StructType) DataType.fromJson(Messages.print(schema));
    return Stream.of(columns.fields()).map(HiddenColumn::of).toList();
  }

  private static MetadataColumn of(StructField field) {
    String comment = field.getComment().getOrElse(() -> null);
    return new HiddenColumn(field.name(), field.dataType(), field.nullable(), comment);
  }
}
