package dev.pennon.spark.tables;

import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * A table to be shown with what a query must not see: the lengths of CHAR and VARCHAR, which Spark
 * takes off what a batch reads, and not off what a stream does, and the hidden columns.
 */
public class DescribedTable extends PennonTable {
  public DescribedTable(PennonTable table) {
    super(table);
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    StructType shown = CharVarcharUtils.getRawSchema(super.schema(), SQLConf.get());
    return Stream.of(reply.hiddenColumns().fields())
        .reduce(shown, StructType::add, (columns, same) -> columns);
  }
}
