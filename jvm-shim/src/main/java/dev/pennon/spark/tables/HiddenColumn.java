package dev.pennon.spark.tables;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;

/** A column that a table has beside its own: read where it is named, left out of {@code *}. */
record HiddenColumn(String name, DataType dataType, boolean isNullable, String comment)
    implements MetadataColumn {

  static HiddenColumn of(StructField field) {
    String comment = field.getComment().getOrElse(() -> null);
    return new HiddenColumn(field.name(), field.dataType(), field.nullable(), comment);
  }
}
