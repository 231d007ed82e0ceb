package dev.pennon.spark.write;

import dev.pennon.spark.catalog.TableHandle;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** Starts a write; what it does with the rows that are there is its mode. */
public final class PennonWriteBuilder implements WriteBuilder {
  private static final String APPEND = "append";

  private final TableHandle table;
  private final LogicalWriteInfo write;

  public PennonWriteBuilder(TableHandle table, LogicalWriteInfo write) {
    this.table = table;
    this.write = write;
  }

  @Override
  public Write build() {
    return new PennonWrite(WritePlan.request(table, write, APPEND));
  }
}
