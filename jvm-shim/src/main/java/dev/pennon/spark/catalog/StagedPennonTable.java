package dev.pennon.spark.catalog;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/** A table that a query fills before it has a name: it gets the name, or it is deleted. */
public final class StagedPennonTable implements StagedTable, SupportsWrite {
  private final PennonTable table;
  private final Runnable publish;
  private final Runnable discard;

  StagedPennonTable(PennonTable table, Runnable publish, Runnable discard) {
    this.table = table;
    this.publish = publish;
    this.discard = discard;
  }

  @Override
  public void commitStagedChanges() {
    publish.run();
  }

  @Override
  public void abortStagedChanges() {
    discard.run();
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
    return table.partitioning();
  }

  @Override
  public Map<String, String> properties() {
    return table.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return table.newWriteBuilder(info);
  }

  @Override
  public String toString() {
    return table.name();
  }
}
