package dev.pennon.spark.tables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.read.PennonScanBuilder;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.write.ChangedTable;
import dev.pennon.spark.write.PennonWriteBuilder;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table that one statement changes, and notes what the statement reads of it. */
public final class NotingTable extends PennonTable implements ChangedTable {
  private final List<PennonScanBuilder> scans = new ArrayList<>();

  NotingTable(PennonTable table) {
    super(table);
  }

  @Override
  public PennonScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return reading(super.newScanBuilder(options));
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new PennonWriteBuilder(this, info);
  }

  /** Notes a scan, which Spark may still find no use for. */
  public PennonScanBuilder reading(PennonScanBuilder scan) {
    scans.add(scan);
    return scan;
  }

  @Override
  public ArrayNode reads() {
    ArrayNode reads = Messages.array();
    scans.forEach(scan -> scan.builtWith().ifPresent(it -> reads.add(Messages.strings(it))));
    RepeatedStatement.executed().ifPresent(it -> noteCached(it.withCachedData(), false, reads));
    return reads;
  }

  @Override
  public void repeatStatement(WorkerFailure refusal, Runnable clear) {
    RepeatedStatement.after(refusal, handle().token(), clear);
  }

  /** Adds a scan of every row for rows that Spark keeps: who put them there made their scan. */
  private void noteCached(LogicalPlan plan, boolean isKept, ArrayNode reads) {
    PlanTables.replaced(
        plan,
        (node, parameter) -> {
          if (parameter instanceof CachedRDDBuilder kept) {
            noteCached(kept.logicalPlan(), true, reads);
          } else if (isKept && parameter instanceof PennonTable read && read.isOf(this)) {
            reads.addArray();
          }
          return parameter;
        });
  }
}
