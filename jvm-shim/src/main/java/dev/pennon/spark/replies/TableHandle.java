package dev.pennon.spark.replies;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import java.io.Serializable;
import org.apache.spark.sql.types.StructType;

/**
 * One loaded table: what every later request about it carries.
 *
 * @param catalog the catalog as JSON text, storage options included
 * @param token the worker's own description of the table, its snapshot pinned
 * @param name the full name as a user writes it
 * @param schema all columns
 */
public record TableHandle(
    SecretText catalog, SecretText token, String name, StructType schema) implements Serializable {
  /** Starts a request about this table: the operation, the catalog and the table. */
  public ObjectNode request(String op) {
    return catalogRequest(op).put("table", token.text());
  }

  /** Starts a request about what was planned of this table: its token names the table, too. */
  public ObjectNode catalogRequest(String op) {
    ObjectNode request = Messages.request(op);
    request.set("catalog", catalog.json());
    return request;
  }
}
