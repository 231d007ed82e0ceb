package dev.pennon.spark.write;

import dev.pennon.spark.failures.WorkerFailure;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** Starts a write; what it does with the rows that are there is its mode. */
public final class PennonWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final ChangedTable table;
  private final LogicalWriteInfo write;
  private String mode = "append";
  private String[] predicates = {};

  public PennonWriteBuilder(ChangedTable table, LogicalWriteInfo write) {
    this.table = table;
    this.write = write;
  }

  /** The write of single rows that a statement names, and of those that it adds. */
  public static DeltaWrite ofRows(ChangedTable table, LogicalWriteInfo write, String mode) {
    return new PennonWrite(WritePlan.request(table, write, mode, new String[0]));
  }

  /** Overwrites the rows that satisfy all predicates; the worker says which it can. */
  @Override
  public WriteBuilder overwrite(Predicate[] conditions) {
    try {
      mode = "overwrite";
      predicates = RowCondition.texts(table.handle(), mode, conditions);
      return this;
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  @Override
  public WriteBuilder overwriteDynamicPartitions() {
    mode = "overwrite_partitions";
    return this;
  }

  @Override
  public Write build() {
    return new PennonWrite(WritePlan.request(table, write, mode, predicates));
  }
}
