package dev.pennon.spark.tables;

import dev.pennon.spark.replies.TableHandle;
import dev.pennon.spark.worker.SecretText;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/**
 * The worker's answer about a table.
 *
 * @param table the worker's own description of it, its snapshot pinned
 * @param name the full name as a user writes it
 * @param schema the columns that Spark has types for
 * @param hiddenColumns the others, with the reason as their comment
 * @param partitioning the current partition spec
 * @param properties the table's properties
 * @param isMetadata whether it tells of another table's metadata
 * @param identity what tells it from another one of its name; null where nothing does
 * @param version its snapshot
 * @param metadataColumns the columns beside its own
 * @param rowId those of them that name a row
 */
public record TableReply(
    SecretText table,
    String name,
    StructType schema,
    StructType hiddenColumns,
    List<Transform> partitioning,
    Map<String, String> properties,
    boolean isMetadata,
    String identity,
    String version,
    StructType metadataColumns,
    List<String> rowId) {
  /** What every later request about the table carries. */
  public TableHandle handle(SecretText catalog) {
    return new TableHandle(catalog, table, name, schema);
  }
}
