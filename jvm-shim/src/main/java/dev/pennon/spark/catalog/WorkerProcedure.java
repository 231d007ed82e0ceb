package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure of the worker, called by {@code CALL catalog.system.name(…)}; its parameters, and what
 * it does and answers, are the worker's to say.
 */
public final class WorkerProcedure extends RowsProcedure {
  private final CatalogConnection worker;
  private final String description;

  private WorkerProcedure(CatalogConnection worker, JsonNode signature, List<ProcedureParameter> parameters) {
    super(Messages.field(signature, "ProcedureSignature", "name").asText(), parameters);
    this.worker = worker;
    this.description = Messages.field(signature, "ProcedureSignature", "description").asText();
  }

  static WorkerProcedure of(CatalogConnection worker, JsonNode signature) {
    List<ProcedureParameter> parameters = new ArrayList<>();
    Messages.field(signature, "ProcedureSignature", "parameters").forEach(each -> parameters.add(parameter(each)));
    return new WorkerProcedure(worker, signature, parameters);
  }

  private static ProcedureParameter parameter(JsonNode json) {
    DataType type = DataType.fromDDL(Messages.field(json, "ProcedureParameter", "type").asText());
    ProcedureParameter.Builder parameter =
        ProcedureParameter.in(Messages.field(json, "ProcedureParameter", "name").asText(), type);
    // What is not given arrives as NULL, and the worker knows what that means.
    return Messages.field(json, "ProcedureParameter", "required").asBoolean()
        ? parameter.build()
        : parameter.defaultValue("NULL").build();
  }

  /** The worker's sentence, for DESCRIBE PROCEDURE. */
  @Override
  public String description() {
    return description;
  }

  @Override
  protected Rows answer(InternalRow arguments) {
    ObjectNode request = worker.request("call").put("procedure", name());
    ObjectNode given = request.putObject("arguments");
    int position = 0;
    for (ProcedureParameter parameter : parameters()) {
      if (!arguments.isNullAt(position)) {
        Object value = arguments.get(position, parameter.dataType());
        given.set(parameter.name(), JsonValues.toJson(value, parameter.dataType()));
      }
      position++;
    }
    JsonNode reply = worker.send(request);
    StructType schema = (StructType) DataType.fromJson(Messages.print(Messages.field(reply, "CallReply", "schema")));
    List<InternalRow> rows = new ArrayList<>();
    Messages.field(reply, "CallReply", "rows").forEach(row -> rows.add(JsonValues.toRow(row, schema)));
    return new Rows(schema, rows.toArray(InternalRow[]::new));
  }
}
