package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.catalog.TableHandle;
import dev.pennon.spark.read.PennonScanBuilder;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
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

  /** What a user is told where a column of the table has the name of one that names its rows. */
  public static WorkerFailure withoutRowId(TableHandle table, Command command) {
    String verb = command.name().toLowerCase(Locale.ROOT);
    return WorkerFailure.of(
        "ROW_ID_HIDDEN",
        "42710",
        Map.of("table", table.name()),
        "Cannot %s single rows of %s: a column of it has the name of a metadata column that "
            + "names rows. Rename the column.",
        verb, table.name());
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
    PennonScanBuilder scan = PennonScanBuilder.ofRowChange(table);
    scans.add(scan);
    return scan;
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    WriteMode mode = WriteMode.ofRows(command.name());
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        WritePlan plan =
            WritePlan.request(table, info, mode, PennonRowLevelOperation.this::reads);
        return new PennonDeltaWrite(plan, info.rowIdSchema().orElseThrow());
      }
    };
  }

  /** The predicates of each scan: another commit of such rows changes what this one is made of. */
  private ArrayNode reads() {
    ArrayNode reads = Messages.array();
    for (PennonScanBuilder scan : scans) {
      scan.builtWith().ifPresent(texts -> reads.add(Messages.strings(texts)));
    }
    return reads;
  }

  @Override
  public String description() {
    return command.name().toLowerCase(Locale.ROOT) + " rows of " + table.name();
  }
}
