package dev.pennon.spark.catalog;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;

/** What a procedure answered. */
record ProcedureRows(StructType schema, InternalRow... rows) implements LocalScan {
  @Override
  public StructType readSchema() {
    return schema;
  }
}
