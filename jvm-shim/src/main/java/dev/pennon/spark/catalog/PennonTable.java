package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.read.PennonScanBuilder;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerConnection;
import dev.pennon.spark.worker.WorkerFailure;
import dev.pennon.spark.write.Commit;
import dev.pennon.spark.write.PennonWriteBuilder;
import dev.pennon.spark.write.RowCondition;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of the catalog at the snapshot that was current when it was loaded. */
public final class PennonTable implements SupportsRead, SupportsWrite, SupportsDeleteV2 {
  private static final Set<TableCapability> CAPABILITIES =
      Set.of(
          TableCapability.BATCH_READ,
          TableCapability.BATCH_WRITE,
          TableCapability.OVERWRITE_BY_FILTER,
          TableCapability.OVERWRITE_DYNAMIC,
          TableCapability.TRUNCATE);

  private final TableHandle handle;
  private final Transform[] partitioning;
  private final Map<String, String> properties;
  private final String identity;
  private final String version;

  private PennonTable(
      TableHandle handle,
      Transform[] partitioning,
      Map<String, String> properties,
      String identity,
      String version) {
    this.handle = handle;
    this.partitioning = partitioning;
    this.properties = properties;
    this.identity = identity;
    this.version = version;
  }

  /** Reads the worker's TableDescription. */
  static PennonTable of(String catalogJson, JsonNode description) {
    StructType schema = (StructType) DataType.fromJson(text(Messages.field(description, "TableReply", "schema")));
    JsonNode partitioning = Messages.field(description, "TableReply", "partitioning");
    TableHandle handle =
        new TableHandle(
            catalogJson,
            Messages.field(description, "TableReply", "table").asText(),
            Messages.field(description, "TableReply", "name").asText(),
            schema,
            Messages.print(partitioning));
    return new PennonTable(
        handle,
        SparkTransforms.fromJson(partitioning),
        Messages.toStringMap(Messages.field(description, "TableReply", "properties")),
        Messages.field(description, "TableReply", "identity").asText(null),
        Messages.field(description, "TableReply", "version").asText(null));
  }

  /** JSON inside of a message stands there as text or as itself. */
  private static String text(JsonNode json) {
    return json.isTextual() ? json.asText() : Messages.print(json);
  }

  public TableHandle handle() {
    return handle;
  }

  @Override
  public String name() {
    return handle.name();
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    return handle.schema();
  }

  @Override
  public Transform[] partitioning() {
    return partitioning.clone();
  }

  @Override
  public Map<String, String> properties() {
    return properties;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return CAPABILITIES;
  }

  /** What tells this table from another one of its name, by which Spark sees one made anew. */
  @Override
  public String id() {
    return identity;
  }

  /** The snapshot, by which Spark sees that a table loaded earlier has changed. */
  @Override
  public String version() {
    return version;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new PennonScanBuilder(handle);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new PennonWriteBuilder(handle, info);
  }

  /** Whole partitions alone can be deleted; anything else is refused with the reason. */
  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    try {
      WorkerConnection.exchange(deletion(handle.request("check_delete"), predicates));
      return true;
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    Commit commit = new Commit(handle, "");
    try {
      commit.make(deletion(commit.request("delete_rows"), predicates));
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  private ObjectNode deletion(ObjectNode request, Predicate... predicates) {
    String[] texts = RowCondition.texts(handle, "delete", predicates);
    request.set("predicates", Messages.strings(texts));
    return request;
  }

  /** The same catalog, table and snapshot: its rows are the same, and may be cached as such. */
  @Override
  public boolean equals(Object other) {
    return other instanceof PennonTable that
        && handle.catalog().equals(that.handle.catalog())
        && handle.token().equals(that.handle.token());
  }

  @Override
  public int hashCode() {
    return handle.token().hashCode();
  }

  @Override
  public String toString() {
    return handle.name();
  }
}
