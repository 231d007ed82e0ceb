package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import java.io.Serializable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * One loaded table: what every later request about it carries.
 *
 * @param catalog the catalog as JSON text, storage options included: never to be shown
 * @param token the worker's own description of the table, its snapshot pinned
 * @param name the full name as a user writes it
 * @param schema all columns
 * @param partitioning the current partition spec as SparkTransform JSON text (a list)
 */
public record TableHandle(
    String catalog, String token, String name, StructType schema, String partitioning)
    implements Serializable {

  /** Reads what every reply about a table says; the catalog's text comes from its request. */
  static TableHandle of(String catalogJson, JsonNode reply) {
    return new TableHandle(
        catalogJson,
        Messages.field(reply, "TableReply", "table").asText(),
        Messages.field(reply, "TableReply", "name").asText(),
        (StructType) DataType.fromJson(Messages.print(Messages.field(reply, "TableReply", "schema"))),
        Messages.print(Messages.field(reply, "TableReply", "partitioning")));
  }

  /** Starts a request about this table: the operation, the catalog and the table. */
  public ObjectNode request(String op) {
    return catalogRequest(op).put("table", token);
  }

  /** Starts a request about what was planned of this table: its token names the table, too. */
  public ObjectNode catalogRequest(String op) {
    ObjectNode request = Messages.request(op);
    request.set("catalog", Messages.parse(catalog));
    return request;
  }

  @Override
  public String toString() {
    return "TableHandle[" + name + "]";
  }
}
