package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.catalog.TableHandle;
import dev.pennon.spark.read.PennonScanBuilder;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
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
  private final TableHandle table;
  private final List<String> rowId;
  private final Command command;
  private final List<PennonScanBuilder> scans = new ArrayList<>();

  /**
   * Starts a statement.
   *
   * @param rowId the metadata columns that name a row
   */
  public PennonRowLevelOperation(TableHandle table, List<String> rowId, Command command) {
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
    return reading(PennonScanBuilder.ofRowChange(table));
  }

  /** Notes a scan of the table beside that of the rows which are changed. */
  public PennonScanBuilder reading(PennonScanBuilder scan) {
    scans.add(scan);
    return scan;
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        return new PennonWrite(
            WritePlan.request(table, info, verb(), new String[0], PennonRowLevelOperation.this::reads));
      }
    };
  }

  /** The predicates of each scan: another commit of such rows changes what this one is made of. */
  private ArrayNode reads() {
    ArrayNode reads = Messages.array();
    scans.forEach(
        scan -> scan.builtWith().ifPresent(texts -> reads.add(Messages.strings(texts))));
    return reads;
  }

  @Override
  public String description() {
    return verb() + " rows of " + table.name();
  }

  private String verb() {
    return command.name().toLowerCase(Locale.ROOT);
  }
}
