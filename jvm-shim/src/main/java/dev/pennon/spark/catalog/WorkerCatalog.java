package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.replies.SparkTransforms;
import dev.pennon.spark.tables.MetadataTable;
import dev.pennon.spark.tables.PennonTable;
import dev.pennon.spark.tables.SchemaChanges;
import dev.pennon.spark.tables.StagedPennonTable;
import dev.pennon.spark.tables.TableReply;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerConnection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The tables and namespaces of a catalog: what Spark asks for is one request to the worker each.
 *
 * <p>Failures are AnalysisExceptions, also where Java does not have them declared.
 */
public abstract class WorkerCatalog implements StagingTableCatalog, SupportsNamespaces {
  private static final String CLASS = "dev.pennon.spark.PennonCatalog";

  private CatalogConnection worker;
  private String[] begin;

  /** Whether a session has one of these by that name; its settings tell, no catalog is loaded. */
  public static boolean isConfigured(SQLConf conf, String name) {
    return conf.getConfString("spark.sql.catalog." + name, "").equals(CLASS);
  }

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    worker = new CatalogConnection(name, options);
    begin = Stream.ofNullable(options.get("defaultNamespace")).toArray(String[]::new);
  }

  @Override
  public final String name() {
    return worker.name();
  }

  @Override
  public final Set<TableCatalogCapability> capabilities() {
    return Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  // Tables

  @Override
  public final Identifier[] listTables(String[] namespace) {
    ObjectNode request = worker.request("list_tables", namespace);
    return Replies.answer(request, ListTablesReply.class).tables().stream()
        .map(table -> Identifier.of(namespace, table))
        .toArray(Identifier[]::new);
  }

  private record ListTablesReply(List<String> tables) {}

  /** Several tables in one request; nothing of one that cannot be loaded. */
  public final List<Optional<Table>> loadTables(List<Identifier> tables) {
    ObjectNode request = worker.request("load_tables");
    ArrayNode names = request.putArray("tables");
    tables.forEach(table -> names.add(CatalogConnection.toJson(table)));
    return Replies.answer(request, LoadTablesReply.class).tables().stream()
        .map(Optional::ofNullable)
        .map(reply -> reply.<Table>map(known -> PennonTable.of(worker.described(), known)))
        .toList();
  }

  private record LoadTablesReply(List<TableReply> tables) {}

  @Override
  public final Table loadTable(Identifier identifier) {
    return loaded(identifier, null, null);
  }

  @Override
  public final Table loadTable(Identifier identifier, String version) {
    return loaded(identifier, version, null);
  }

  @Override
  public final Table loadTable(Identifier identifier, long timestampMicros) {
    return loaded(identifier, null, timestampMicros);
  }

  private Table loaded(Identifier identifier, String version, Long timestampMicros) {
    ObjectNode request = worker.request("load_table", identifier);
    request.put("version", version).put("timestamp_micros", timestampMicros);
    request.put("named", StackWalker.getInstance().walk(WorkerCatalog::isRefreshed));
    TableReply reply = Replies.answer(request, TableReply.class);
    return reply.isMetadata()
        ? new MetadataTable(reply.handle(worker.described()))
        : PennonTable.of(worker.described(), reply)
            .loadedBy(Columns.quoted(name()) + "." + identifier);
  }

  /** Whether the query has named the table before: behind its analysis Spark loads it again. */
  private static boolean isRefreshed(Stream<StackWalker.StackFrame> callers) {
    return callers.limit(8).anyMatch(at -> at.getClassName().contains("V2TableRefreshUtil"));
  }

  /** What a function finds in a table, as a table. */
  public final Table searched(
      Identifier identifier,
      String version,
      String function,
      Map<String, String> arguments,
      List<String> where) {
    ObjectNode search = Messages.object().put("function", function);
    search.set("arguments", Messages.strings(arguments));
    search.set("where", Messages.strings(where));
    search.put("time_zone", SQLConf.get().sessionLocalTimeZone());
    ObjectNode request = worker.request("load_search", identifier).put("version", version);
    TableReply reply = Replies.answer(request.set("search", search), TableReply.class);
    return new MetadataTable(reply.handle(worker.described()));
  }

  /** Spark hands over those options of a change feed alone that are named here. */
  @Override
  public final Set<String> changelogStateOptionKeys() {
    return Set.of("key");
  }

  /** What commits did to the rows of a table; only a Spark that knows such feeds asks for one. */
  @Override
  public final Changelog loadChangelog(
      Identifier identifier, ChangelogContext context, CaseInsensitiveStringMap options) {
    return ChangeFeed.load(worker, identifier, context, options);
  }

  /** A table whose files are damaged is there too: else DROP TABLE could not remove it. */
  @Override
  public final boolean tableExists(Identifier identifier) {
    try {
      return loadTable(identifier) != null;
    } catch (Exception e) {
      if (e instanceof NoSuchTableException || e instanceof NoSuchNamespaceException) {
        return false;
      }
      if (List.of(listTables(identifier.namespace())).contains(identifier)) {
        return true;
      }
      throw WorkerFailure.<RuntimeException>sneak(e);
    }
  }

  @Override
  public final Table createTable(Identifier identifier, TableInfo info) {
    return table(creation("create_table", "create", identifier, info));
  }

  /** Spark 4.3 asks for it, with the source's columns and partitioning. */
  @Override
  public final Table createTableLike(Identifier identifier, TableInfo info, Table source) {
    return createTable(identifier, info);
  }

  // A query fills a staged table before the table has its name

  @Override
  public final StagedTable stageCreate(Identifier identifier, TableInfo info) {
    return stageTable("create", identifier, info);
  }

  @Override
  public final StagedTable stageReplace(Identifier identifier, TableInfo info) {
    return stageTable("replace", identifier, info);
  }

  @Override
  public final StagedTable stageCreateOrReplace(Identifier identifier, TableInfo info) {
    return stageTable("create_or_replace", identifier, info);
  }

  private StagedTable stageTable(String mode, Identifier identifier, TableInfo info) {
    PennonTable staged = table(creation("stage_table", mode, identifier, info));
    String token = staged.handle().token().text();
    return new StagedPennonTable(
        staged, op -> worker.request(op, identifier).put("table", token), mode);
  }

  private ObjectNode creation(String op, String mode, Identifier identifier, TableInfo info) {
    Map<String, String> properties = new HashMap<>(info.properties());
    // Spark spells a local path as Hadoop does, file:/path.
    properties.computeIfPresent(
        TableCatalog.PROP_LOCATION, (key, path) -> path.replaceFirst("^file:/+", "/"));
    ObjectNode request = worker.request(op, identifier);
    request.put("schema", CatalogV2Util.v2ColumnsToStructType(info.columns()).json());
    request.set("partitioning", SparkTransforms.toJson(info.partitions()));
    request.set("properties", Messages.strings(properties));
    return request.put("mode", mode);
  }

  /** Applies the changes of one statement. */
  @Override
  public final Table alterTable(Identifier identifier, TableChange... changes) {
    ObjectNode request = worker.request("alter_table", identifier);
    return table(request.set("changes", SchemaChanges.toJson(changes)));
  }

  private PennonTable table(ObjectNode request) {
    return PennonTable.of(worker.described(), Replies.answer(request, TableReply.class));
  }

  @Override
  public final boolean dropTable(Identifier identifier) {
    return Replies.answer(worker.request("drop_table", identifier), DroppedReply.class).dropped();
  }

  private record DroppedReply(boolean dropped) {}

  @Override
  public final boolean purgeTable(Identifier identifier) {
    return dropTable(identifier);
  }

  @Override
  public final void renameTable(Identifier from, Identifier to) {
    ObjectNode request = worker.request("rename_table", from);
    WorkerConnection.answer(request.set("to", CatalogConnection.toJson(to)));
  }

  // Namespaces

  /** Where a session of the catalog begins; the root where the option does not say. */
  @Override
  public final String[] defaultNamespace() {
    return begin;
  }

  @Override
  public final String[][] listNamespaces() {
    return listNamespaces(new String[0]);
  }

  @Override
  public final String[][] listNamespaces(String[] parent) {
    ObjectNode request = worker.request("list_namespaces", parent);
    return Replies.answer(request, ListNamespacesReply.class).namespaces().toArray(String[][]::new);
  }

  private record ListNamespacesReply(List<String[]> namespaces) {}

  @Override
  public final Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return describeNamespace(namespace, true);
  }

  /** Spec versions and partitions of a table can be described, and are no place for tables. */
  @Override
  public final boolean namespaceExists(String[] namespace) {
    try {
      return this.<NoSuchNamespaceException>describeNamespace(namespace, false) != null;
    } catch (NoSuchNamespaceException e) {
      return false;
    }
  }

  /** Fails with the worker's own words where there is no such namespace. */
  public final void checkNamespace(String[] namespace) {
    describeNamespace(namespace, false);
  }

  /** The properties of a namespace; what is inside of a table counts as one where wanted. */
  private <T extends Exception> Map<String, String> describeNamespace(
      String[] namespace, boolean inTables) throws T {
    ObjectNode request = worker.request("describe_namespace", namespace).put("in_tables", inTables);
    return Replies.answer(request, PropertiesReply.class).properties();
  }

  private record PropertiesReply(Map<String, String> properties) {}

  @Override
  public final void createNamespace(String[] namespace, Map<String, String> properties) {
    ObjectNode request = worker.request("create_namespace", namespace);
    WorkerConnection.answer(request.set("properties", Messages.strings(properties)));
  }

  @Override
  public final void alterNamespace(String[] namespace, NamespaceChange... changes) {
    ObjectNode request = worker.request("alter_namespace", namespace);
    ObjectNode set = request.putObject("set");
    ArrayNode remove = request.putArray("remove");
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty property) {
        set.put(property.property(), property.value());
      } else {
        remove.add(((NamespaceChange.RemoveProperty) change).property());
      }
    }
    WorkerConnection.answer(request);
  }

  @Override
  public final boolean dropNamespace(String[] namespace, boolean cascade) {
    ObjectNode request = worker.request("drop_namespace", namespace).put("cascade", cascade);
    return Replies.answer(request, DroppedReply.class).dropped();
  }

  // Procedures

  /**
   * The procedures that CALL knows; the worker's error lists them where none has the name.
   *
   * @param name that of one; null for all
   */
  protected final List<WorkerProcedure> procedures(String name) {
    ObjectNode request = worker.request("list_procedures").put("name", name);
    return Replies.answer(request, ListProceduresReply.class).procedures().stream()
        .map(signature -> new WorkerProcedure(worker, signature))
        .toList();
  }

  private record ListProceduresReply(List<ProcedureSignature> procedures) {}
}
