package dev.pennon.spark.tables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.worker.SecretText;
import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.TableChange;

/**
 * A table for Spark 4.2 and later, which ask of each column of a statement WITH SCHEMA EVOLUTION whether the
 * table takes its change; 4.1 hands all changes to {@code alterTable}.
 */
final class EvolvingTable extends PennonTable implements SupportsSchemaEvolution {
  private EvolvingTable(SecretText catalog, TableReply reply) {
    super(catalog, reply);
  }

  /** Says no more of its type, so that whoever calls this is verified without this class. */
  static PennonTable evolving(SecretText catalog, TableReply reply) {
    return new EvolvingTable(catalog, reply);
  }

  @Override
  public boolean supportsColumnChange(TableChange.ColumnChange change) {
    ObjectNode request = handle().request("check_change");
    request.set("change", SchemaChanges.toJson(change).get(0));
    return Replies.answer(request, CheckChangeReply.class).possible();
  }

  private record CheckChangeReply(boolean possible) {}
}
