package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The catalog's operations, one request each.
 *
 * <p>Failures are AnalysisExceptions, also where Java does not have them declared.
 */
public final class CatalogOperations {
  private final CatalogConnection worker;

  public CatalogOperations(String name, CaseInsensitiveStringMap options) {
    this.worker = new CatalogConnection(name, options);
  }

  public String catalogName() {
    return worker.name();
  }

  public Identifier[] listTables(String[] namespace) {
    ObjectNode request = worker.request("list_tables", namespace);
    return worker.send(request, ListTablesReply.class).tables().stream()
        .map(table -> Identifier.of(namespace, table))
        .toArray(Identifier[]::new);
  }

  private record ListTablesReply(List<String> tables) {}

  public Table loadTable(Identifier identifier, String version, Long timestampMicros) {
    ObjectNode request = worker.request("load_table", identifier);
    request.put("version", version).put("timestamp_micros", timestampMicros);
    TableReply reply = worker.send(request, TableReply.class);
    return reply.isMetadata()
        ? new MetadataTable(reply.handle(worker.toJson()))
        : PennonTable.of(worker.toJson(), reply);
  }

  /** What commits did to the rows of a table; only a Spark that knows such feeds asks for one. */
  public Changelog loadChangelog(
      Identifier identifier, ChangelogContext context, CaseInsensitiveStringMap options) {
    return ChangeFeed.load(worker, identifier, context, options);
  }

  /**
   * Whether there is such a table; not there is the exception that Spark declares for it.
   *
   * <p>A table whose files are damaged is there too: else DROP TABLE could not remove it.
   */
  public boolean tableExists(Identifier identifier)
      throws NoSuchTableException, NoSuchNamespaceException {
    try {
      return loadTable(identifier, null, null) != null;
    } catch (Exception e) {
      boolean isMissing = e instanceof NoSuchTableException || e instanceof NoSuchNamespaceException;
      boolean isListed =
          !isMissing && List.of(listTables(identifier.namespace())).contains(identifier);
      if (isListed) {
        return true;
      }
      throw WorkerFailure.sneak(e);
    }
  }

  public PennonTable createTable(
      Identifier identifier,
      Column[] columns,
      Transform[] partitioning,
      Map<String, String> properties) {
    return table(creation("create_table", "create", identifier, columns, partitioning, properties));
  }

  /**
   * Makes a table that has no name until its rows are there.
   *
   * @param mode {@code create}, {@code replace} or {@code create_or_replace}
   */
  public StagedPennonTable stageTable(
      String mode,
      Identifier identifier,
      Column[] columns,
      Transform[] partitioning,
      Map<String, String> properties) {
    PennonTable staged =
        table(creation("stage_table", mode, identifier, columns, partitioning, properties));
    return new StagedPennonTable(
        staged,
        () -> worker.send(aboutStaged("publish_table", identifier, staged).put("mode", mode)),
        () -> worker.send(aboutStaged("discard_table", identifier, staged)));
  }

  private ObjectNode aboutStaged(String op, Identifier identifier, PennonTable staged) {
    return worker.request(op, identifier).put("table", staged.handle().token());
  }

  private ObjectNode creation(
      String op,
      String mode,
      Identifier identifier,
      Column[] columns,
      Transform[] partitioning,
      Map<String, String> properties) {
    Map<String, String> kept = new HashMap<>(properties);
    // Spark adds the user of the session; the format has no owner.
    kept.remove(TableCatalog.PROP_OWNER);
    // Spark spells a local path as Hadoop does, file:/path.
    kept.computeIfPresent(
        TableCatalog.PROP_LOCATION, (key, path) -> path.replaceFirst("^file:/+", "/"));
    ObjectNode request = worker.request(op, identifier);
    request.put("schema", CatalogV2Util.v2ColumnsToStructType(columns).json());
    request.set("partitioning", SparkTransforms.toJson(partitioning));
    request.set("properties", Messages.strings(kept));
    return request.put("mode", mode);
  }

  /** Applies the changes of one statement. */
  public PennonTable alterTable(Identifier identifier, TableChange... changes) {
    ObjectNode request = worker.request("alter_table", identifier);
    request.set("changes", SchemaChanges.toJson(changes));
    return table(request);
  }

  public boolean dropTable(Identifier identifier) {
    ObjectNode request = worker.request("drop_table", identifier);
    return worker.send(request, DroppedReply.class).dropped();
  }

  public void renameTable(Identifier from, Identifier to) {
    ObjectNode request = worker.request("rename_table", from);
    request.set("to", CatalogConnection.toJson(to));
    worker.send(request);
  }

  public String[][] listNamespaces(String[] parent) {
    ObjectNode request = worker.request("list_namespaces", parent);
    return worker.send(request, ListNamespacesReply.class).namespaces().toArray(String[][]::new);
  }

  private record ListNamespacesReply(List<String[]> namespaces) {}

  /** The properties of a namespace; what is inside of a table counts as one where wanted. */
  public Map<String, String> describeNamespace(String[] namespace, boolean inTables) {
    ObjectNode request = worker.request("describe_namespace", namespace).put("in_tables", inTables);
    return worker.send(request, PropertiesReply.class).properties();
  }

  private record PropertiesReply(Map<String, String> properties) {}

  public boolean namespaceExists(String[] namespace) throws NoSuchNamespaceException {
    describeNamespace(namespace, false);
    return true;
  }

  public void createNamespace(String[] namespace, Map<String, String> properties) {
    Map<String, String> kept = new HashMap<>(properties);
    kept.remove(TableCatalog.PROP_OWNER);
    ObjectNode request = worker.request("create_namespace", namespace);
    request.set("properties", Messages.strings(kept));
    worker.send(request.put("if_not_exists", false));
  }

  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    ObjectNode set = Messages.object();
    ArrayNode remove = Messages.array();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty property) {
        set.put(property.property(), property.value());
      } else if (change instanceof NamespaceChange.RemoveProperty property) {
        remove.add(property.property());
      } else {
        throw new IllegalArgumentException(
            "Pennon namespaces do not support " + change.getClass().getSimpleName());
      }
    }
    ObjectNode request = worker.request("alter_namespace", namespace);
    request.set("set", set);
    request.set("remove", remove);
    worker.send(request);
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    ObjectNode request = worker.request("drop_namespace", namespace).put("cascade", cascade);
    return worker.send(request, DroppedReply.class).dropped();
  }

  /** The procedures that CALL knows. */
  public List<WorkerProcedure> procedures() {
    ObjectNode request = worker.request("list_procedures");
    return worker.send(request, ListProceduresReply.class).procedures().stream()
        .map(signature -> new WorkerProcedure(worker, signature))
        .toList();
  }

  private record ListProceduresReply(List<ProcedureSignature> procedures) {}

  private record DroppedReply(boolean dropped) {}

  /** The procedure of that name; where there is none, the worker's error lists those there are. */
  public WorkerProcedure procedure(String name) {
    for (WorkerProcedure procedure : procedures()) {
      if (procedure.name().equalsIgnoreCase(name)) {
        return procedure;
      }
    }
    ObjectNode request = worker.request("call").put("procedure", name);
    request.putObject("arguments");
    worker.send(request);
    throw WorkerFailure.protocol("procedure " + name + " is called and not listed", null).raise();
  }

  private PennonTable table(ObjectNode request) {
    return PennonTable.of(worker.toJson(), worker.send(request, TableReply.class));
  }
}
