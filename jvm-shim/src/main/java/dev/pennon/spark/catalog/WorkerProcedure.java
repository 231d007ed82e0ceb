package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.SessionCatalogs;
import dev.pennon.spark.replies.JsonValues;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.ReplyTable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure of the worker, called by {@code CALL catalog.system.name(…)}; its parameters, and what
 * it does and answers, are the worker's to say.
 */
public final class WorkerProcedure extends RowsProcedure {
  private final CatalogConnection worker;
  private final String description;

  WorkerProcedure(CatalogConnection worker, ProcedureSignature signature) {
    super(signature.name(), signature.parameters().stream().map(WorkerProcedure::parameter).toList());
    this.worker = worker;
    this.description = signature.description();
  }

  private static ProcedureParameter parameter(ProcedureSignature.ProcedureParameter declared) {
    ProcedureParameter.Builder parameter =
        ProcedureParameter.in(declared.name(), DataType.fromDDL(declared.type()));
    // What is not given arrives as NULL, and the worker knows what that means.
    return declared.required() ? parameter.build() : parameter.defaultValue("NULL").build();
  }

  /** The worker's sentence, for DESCRIBE PROCEDURE. */
  @Override
  public String description() {
    return description;
  }

  @Override
  protected Rows answer(InternalRow arguments) {
    ObjectNode request = worker.request("call").put("procedure", name());
    request.put("time_zone", SQLConf.get().sessionLocalTimeZone());
    ObjectNode given = request.putObject("arguments");
    int position = 0;
    for (ProcedureParameter parameter : parameters()) {
      Object value = arguments.get(position++, parameter.dataType());
      given.set(parameter.name(), JsonValues.toJson(value, parameter.dataType()));
    }
    SessionCatalogs session = SessionCatalogs.of(SparkSession.active());
    String catalog = session.current().name();
    request.set("namespace", Messages.strings(session.currentNamespace()).insert(0, catalog));
    List<InternalRow> rows = new ArrayList<>();
    JsonNode reply =
        ReplyTable.answer(
            request, batch -> rows.addAll(ReplyTable.rows(batch, batch.getFieldVectors())));
    CallReply read = Replies.read(reply, CallReply.class);
    // What the session has cached of such a table is of an older version.
    read.renewed().forEach(SparkSession.active().catalog()::refreshTable);
    return new Rows(read.schema(), rows.toArray(InternalRow[]::new));
  }

  private record CallReply(StructType schema, List<String> renewed) {}
}
