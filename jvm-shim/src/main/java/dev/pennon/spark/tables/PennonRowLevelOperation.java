package dev.pennon.spark.tables;

import dev.pennon.spark.read.PennonScanBuilder;
import dev.pennon.spark.write.PennonWriteBuilder;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** DELETE, UPDATE or MERGE of single rows, which the scan names and the write removes. */
public final class PennonRowLevelOperation implements SupportsDelta {
  private final NotingTable table;
  private final List<String> rowId;
  private final Command command;

  /**
   * Starts a statement.
   *
   * @param rowId the metadata columns that name a row
   */
  public PennonRowLevelOperation(NotingTable table, List<String> rowId, Command command) {
    this.table = table;
    this.rowId = rowId;
    this.command = command;
  }

  @Override
  public Command command() {
    return command;
  }

  @Override
  public NamedReference[] rowId() {
    return rowId.stream().map(Expressions::column).toArray(NamedReference[]::new);
  }

  /** A row whose partition changes moves, so an update is a delete and an insert. */
  @Override
  public boolean representUpdateAsDeleteAndInsert() {
    return true;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table.reading(PennonScanBuilder.ofRowChange(table.handle()));
  }

  /** The table, to be read beside the rows which are changed. */
  public NotingTable table() {
    return table;
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        return PennonWriteBuilder.ofRows(table, info, verb());
      }
    };
  }

  @Override
  public String description() {
    return verb() + " rows of " + table.name();
  }

  private String verb() {
    return command.name().toLowerCase(Locale.ROOT);
  }
}
