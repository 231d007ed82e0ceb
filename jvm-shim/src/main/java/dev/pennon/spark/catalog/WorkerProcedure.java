package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A procedure of the worker, called by {@code CALL catalog.system.name(…)}. */
public final class WorkerProcedure implements UnboundProcedure, BoundProcedure {
  private final CatalogConnection worker;
  private final String name;
  private final String description;
  private final List<ProcedureParameter> parameters;

  private WorkerProcedure(
      CatalogConnection worker,
      String name,
      String description,
      List<ProcedureParameter> parameters) {
    this.worker = worker;
    this.name = name;
    this.description = description;
    this.parameters = parameters;
  }

  static WorkerProcedure of(CatalogConnection worker, JsonNode signature) {
    List<ProcedureParameter> parameters = new ArrayList<>();
    Messages.field(signature, "ProcedureSignature", "parameters").forEach(each -> parameters.add(parameter(each)));
    return new WorkerProcedure(
        worker,
        Messages.field(signature, "ProcedureSignature", "name").asText(),
        Messages.field(signature, "ProcedureSignature", "description").asText(),
        parameters);
  }

  private static ProcedureParameter parameter(JsonNode json) {
    DataType type = DataType.fromJson(Messages.print(Messages.field(json, "ProcedureParameter", "type")));
    ProcedureParameter.Builder parameter =
        ProcedureParameter.in(Messages.field(json, "ProcedureParameter", "name").asText(), type);
    // What is not given arrives as NULL, and the worker knows what that means.
    return Messages.field(json, "ProcedureParameter", "required").asBoolean()
        ? parameter.build()
        : parameter.defaultValue("NULL").build();
  }

  @Override
  public String name() {
    return name;
  }

  /** The worker's sentence, for DESCRIBE PROCEDURE. */
  @Override
  public String description() {
    return description;
  }

  @Override
  public BoundProcedure bind(StructType argumentTypes) {
    return this;
  }

  @Override
  public ProcedureParameter[] parameters() {
    return parameters.toArray(ProcedureParameter[]::new);
  }

  /** Procedures change tables, or tell how they are now. */
  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public Iterator<Scan> call(InternalRow arguments) {
    ObjectNode request = worker.request("call").put("procedure", name);
    ObjectNode given = request.putObject("arguments");
    for (int i = 0; i < parameters.size(); i++) {
      ProcedureParameter parameter = parameters.get(i);
      if (!arguments.isNullAt(i)) {
        Object value = arguments.get(i, parameter.dataType());
        given.set(parameter.name(), JsonValues.toJson(value, parameter.dataType()));
      }
    }
    JsonNode reply = worker.send(request);
    StructType schema = (StructType) DataType.fromJson(Messages.print(Messages.field(reply, "CallReply", "schema")));
    List<InternalRow> rows = new ArrayList<>();
    Messages.field(reply, "CallReply", "rows").forEach(row -> rows.add(JsonValues.toRow(row, schema)));
    Scan answer = new ProcedureRows(schema, rows.toArray(InternalRow[]::new));
    return List.of(answer).iterator();
  }
}
