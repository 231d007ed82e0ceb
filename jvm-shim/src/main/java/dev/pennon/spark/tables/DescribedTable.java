package dev.pennon.spark.tables;

import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * A table to be shown with the lengths of CHAR and VARCHAR, which a query must not see: Spark takes
 * them off what a batch reads, and not off what a stream does.
 */
public class DescribedTable extends PennonTable {
  public DescribedTable(PennonTable table) {
    super(table);
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    return CharVarcharUtils.getRawSchema(super.schema(), SQLConf.get());
  }
}
