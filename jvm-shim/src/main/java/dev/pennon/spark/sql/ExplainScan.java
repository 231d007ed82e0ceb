package dev.pennon.spark.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.read.PennonScan;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerConnection;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL catalog.system.explain_scan('SELECT …')}: which partitions each scan of a query reads,
 * and what each of its conditions prunes. The query is planned, not run.
 */
public final class ExplainScan implements UnboundProcedure, BoundProcedure {
  public static final String NAME = "explain_scan";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public BoundProcedure bind(StructType argumentTypes) {
    return this;
  }

  @Override
  public ProcedureParameter[] parameters() {
    return new ProcedureParameter[] {
      ProcedureParameter.in("query", DataTypes.StringType).build()
    };
  }

  /** The answer depends on the tables as they are now. */
  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public Iterator<Scan> call(InternalRow arguments) {
    SparkSession session = SparkSession.active();
    List<PennonScan> scans = new ArrayList<>();
    PennonScan.listening(
        scans::add, () -> ExplainJoin.planned(session, arguments.getString(0)));
    List<InternalRow> rows = new ArrayList<>();
    for (PennonScan scan : scans) {
      ObjectNode outline = scan.outline();
      for (JsonNode line : report(outline)) {
        rows.add(
            ExplainJoin.row(
                Stream.of(outline.get("table"), line.get(0), line.get(1)).map(JsonNode::asText)));
      }
    }
    StructType schema =
        new StructType()
            .add("table", DataTypes.StringType)
            .add("item", DataTypes.StringType)
            .add("description", DataTypes.StringType);
    return List.<Scan>of(new ExplainJoin.Rows(schema, rows.toArray(InternalRow[]::new)))
        .iterator();
  }

  private static JsonNode report(ObjectNode outline) {
    ObjectNode request = Messages.request("explain_scan");
    request.set("catalog", outline.get("catalog"));
    request.set("plan", outline.get("plan"));
    try {
      return Messages.field(WorkerConnection.exchange(request), "ExplainScanReply", "rows");
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }
}
