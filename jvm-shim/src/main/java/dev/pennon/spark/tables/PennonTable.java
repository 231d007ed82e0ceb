package dev.pennon.spark.tables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.SchemaEvolution;
import dev.pennon.spark.expressions.ConnectorPredicates;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.read.PennonScanBuilder;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.replies.TableHandle;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import dev.pennon.spark.write.Commit;
import dev.pennon.spark.write.RowCondition;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table of the catalog at the snapshot that was current when it was loaded. */
public class PennonTable
    implements SupportsRead,
        SupportsWrite,
        SupportsDeleteV2,
        SupportsRowLevelOperations,
        SupportsMetadataColumns {
  /** SCAN_MERGING, one scan for several subqueries, is of Spark 4.3 and later. */
  private static final Set<String> ABILITIES =
      Set.of(
          "BATCH_READ", "MICRO_BATCH_READ", "BATCH_WRITE", "STREAMING_WRITE", "TRUNCATE",
          "AUTOMATIC_SCHEMA_EVOLUTION", "OVERWRITE_BY_FILTER", "OVERWRITE_DYNAMIC", "SCAN_MERGING");

  private static final Set<TableCapability> CAPABILITIES =
      Stream.of(TableCapability.values())
          .filter(capability -> ABILITIES.contains(capability.name()))
          .collect(Collectors.toUnmodifiableSet());

  /** The names by which each table was loaded: under each of them Spark may keep rows of it. */
  private static final Map<String, Set<String>> NAMES = new ConcurrentHashMap<>();

  private final TableHandle handle;
  final TableReply reply;

  PennonTable(SecretText catalog, TableReply reply) {
    this.handle = reply.handle(catalog);
    this.reply = reply;
  }

  /** The same table, for what shows it otherwise. */
  PennonTable(PennonTable table) {
    this.handle = table.handle;
    this.reply = table.reply;
  }

  /** A table of the kind that this Spark asks for. */
  public static PennonTable of(SecretText catalog, TableReply reply) {
    return SchemaEvolution.IS_ASKED_FOR
        ? EvolvingTable.evolving(catalog, reply)
        : new PennonTable(catalog, reply);
  }

  public final TableHandle handle() {
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
    return reply.partitioning().toArray(Transform[]::new);
  }

  @Override
  public Map<String, String> properties() {
    return reply.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return CAPABILITIES;
  }

  /** What tells this table from another one of its name, by which Spark sees one made anew. */
  @Override
  public String id() {
    return reply.identity();
  }

  /** The snapshot, by which Spark sees that a table loaded earlier has changed. */
  @Override
  public String version() {
    return reply.version();
  }

  @Override
  public PennonScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new PennonScanBuilder(handle, options.asCaseSensitiveMap());
  }

  /** This table for one statement that changes its rows. */
  public final NotingTable noting() {
    return new NotingTable(this);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return noting().newWriteBuilder(info);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    Stream<StructField> fields = Stream.of(reply.metadataColumns().fields());
    return fields.map(HiddenColumn::of).toArray(MetadataColumn[]::new);
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return () -> begun(info.command());
  }

  /** A statement that changes single rows. */
  public final PennonRowLevelOperation begun(RowLevelOperation.Command command) {
    if (reply.rowId().isEmpty()) {
      String action = command.name().toLowerCase(Locale.ROOT);
      throw WorkerFailure.of("ROW_ID_HIDDEN", "table", name(), "action", action).raise();
    }
    return new PennonRowLevelOperation(noting(), reply.rowId(), command);
  }

  /** Whether whole partitions go; else Spark finds the rows and deletes them one by one. */
  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    List<String> texts = ConnectorPredicates.texts(handle.schema(), predicates);
    if (texts.size() < predicates.length) {
      return false;
    }
    ObjectNode request = handle.request("check_delete");
    request.set("predicates", Messages.strings(texts));
    return Replies.answer(request, CheckDeleteReply.class).possible();
  }

  private record CheckDeleteReply(boolean possible) {}

  @Override
  public void deleteWhere(Predicate[] predicates) {
    Commit commit = new Commit(noting(), "");
    try {
      ObjectNode request = commit.named(handle.request("delete_rows"));
      request.set("predicates", Messages.strings(RowCondition.texts(handle, "delete", predicates)));
      try {
        commit.make(request);
      } catch (WorkerFailure refusal) {
        RepeatedStatement.after(refusal, handle.token(), () -> {});
      }
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  /** Whether this is the other table, at any version. */
  public final boolean isOf(PennonTable other) {
    return id() != null && id().equals(other.id()) && handle.catalog().equals(other.handle.catalog());
  }

  /** This table, which was loaded by a name as SQL has it. */
  public final PennonTable loadedBy(String name) {
    if (id() != null) {
      NAMES.computeIfAbsent(id(), id -> ConcurrentHashMap.newKeySet()).add(name);
    }
    return this;
  }

  /** Has Spark read anew what it keeps of the table; under its only name Spark does so by itself. */
  public final void renewKept() {
    SparkSession session = SparkSession.active();
    Set<String> names = id() == null ? Set.of() : NAMES.getOrDefault(id(), Set.of());
    boolean mayBeKept = names.size() > 1 && !session.sharedState().cacheManager().isEmpty();
    for (String name : mayBeKept ? names : Set.<String>of()) {
      try {
        session.catalog().refreshTable(name);
      } catch (Exception gone) { // renamed or dropped; Scala declares none of what it throws
        names.remove(name);
      }
    }
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
