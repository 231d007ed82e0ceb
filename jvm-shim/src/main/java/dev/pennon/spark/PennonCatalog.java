package dev.pennon.spark;

import dev.pennon.spark.catalog.CatalogOperations;
import dev.pennon.spark.catalog.Execution;
import dev.pennon.spark.functions.Transforms;
import dev.pennon.spark.plan.ExplainJoin;
import dev.pennon.spark.plan.ExplainScan;
import dev.pennon.spark.worker.WorkerProcess;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Lance Partitioned Namespaces and plain Lance tables as a catalog of Spark SQL.
 *
 * <p>{@code spark.sql.catalog.<name> = dev.pennon.spark.PennonCatalog}, {@code
 * spark.sql.catalog.<name>.root = <path or URL>}; options under {@code storage.} go to Lance.
 */
public final class PennonCatalog
    implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog, ProcedureCatalog {
  /** Where procedures are, and functions besides the catalog's root. */
  private static final String SYSTEM_NAMESPACE = "system";

  private CatalogOperations operations;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    operations = new CatalogOperations(name, options);
    Execution.of(name, SQLConf.get());
    WorkerProcess.startEarly();
  }

  @Override
  public String name() {
    return operations.catalogName();
  }

  @Override
  public String[] defaultNamespace() {
    return new String[0];
  }

  @Override
  public Set<TableCatalogCapability> capabilities() {
    return Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  // Tables

  @Override
  public Identifier[] listTables(String[] namespace) {
    return operations.listTables(namespace);
  }

  @Override
  public Table loadTable(Identifier identifier) {
    return operations.loadTable(identifier, null, null);
  }

  @Override
  public Table loadTable(Identifier identifier, String version) {
    return operations.loadTable(identifier, version, null);
  }

  @Override
  public Table loadTable(Identifier identifier, long timestampMicros) {
    return operations.loadTable(identifier, null, timestampMicros);
  }

  /** Spark hands over those options of a change feed alone that are named here. */
  @Override
  public Set<String> changelogStateOptionKeys() {
    return Set.of("key");
  }

  @Override
  public Changelog loadChangelog(
      Identifier identifier, ChangelogContext context, CaseInsensitiveStringMap options) {
    return operations.loadChangelog(identifier, context, options);
  }

  @Override
  public boolean tableExists(Identifier identifier) {
    try {
      return operations.tableExists(identifier);
    } catch (NoSuchTableException | NoSuchNamespaceException e) {
      return false;
    }
  }

  @Override
  public Table createTable(Identifier identifier, TableInfo info) {
    return operations.createTable(
        identifier, info.columns(), info.partitions(), info.properties());
  }

  /** Spark 4.3 asks for it, with the source's columns and partitioning. */
  @Override
  public Table createTableLike(Identifier identifier, TableInfo info, Table source) {
    return createTable(identifier, info);
  }

  @Override
  @SuppressWarnings("deprecation")
  public Table createTable(
      Identifier identifier,
      Column[] columns,
      Transform[] partitioning,
      Map<String, String> properties) {
    return operations.createTable(identifier, columns, partitioning, properties);
  }

  // A query fills a staged table before the table has its name

  @Override
  public StagedTable stageCreate(Identifier identifier, TableInfo info) {
    return stage("create", identifier, info);
  }

  @Override
  public StagedTable stageReplace(Identifier identifier, TableInfo info) {
    return stage("replace", identifier, info);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier identifier, TableInfo info) {
    return stage("create_or_replace", identifier, info);
  }

  private StagedTable stage(String mode, Identifier identifier, TableInfo info) {
    return operations.stageTable(
        mode, identifier, info.columns(), info.partitions(), info.properties());
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) {
    return operations.alterTable(identifier, changes);
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    return operations.dropTable(identifier);
  }

  @Override
  public boolean purgeTable(Identifier identifier) {
    return operations.dropTable(identifier);
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    operations.renameTable(from, to);
  }

  // Namespaces

  @Override
  public String[][] listNamespaces() {
    return operations.listNamespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] parent) {
    return operations.listNamespaces(parent);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return operations.describeNamespace(namespace, true);
  }

  /** Spec versions and partitions of a table can be described, and are no place for tables. */
  @Override
  public boolean namespaceExists(String[] namespace) {
    try {
      return operations.namespaceExists(namespace);
    } catch (NoSuchNamespaceException e) {
      return false;
    }
  }

  /** Fails with the worker's own words where there is no such namespace. */
  public void checkNamespace(String[] namespace) {
    operations.describeNamespace(namespace, false);
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> properties) {
    operations.createNamespace(namespace, properties);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    operations.alterNamespace(namespace, changes);
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return operations.dropNamespace(namespace, cascade);
  }

  // Functions

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    if (!holdsFunctions(namespace)) {
      return new Identifier[0];
    }
    return Transforms.names().stream()
        .map(function -> Identifier.of(namespace, function))
        .toArray(Identifier[]::new);
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    if (!holdsFunctions(identifier.namespace())) {
      throw new NoSuchFunctionException(identifier);
    }
    return Transforms.find(identifier.name())
        .orElseThrow(() -> new NoSuchFunctionException(identifier));
  }

  // Procedures

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    if (!holdsFunctions(namespace)) {
      return new Identifier[0];
    }
    Stream<String> ofWorker = operations.procedures().stream().map(UnboundProcedure::name);
    return Stream.concat(ofWorker, Stream.of(ExplainJoin.NAME, ExplainScan.NAME))
        .map(name -> Identifier.of(new String[] {SYSTEM_NAMESPACE}, name))
        .toArray(Identifier[]::new);
  }

  /** The procedure of that name; a worker that does not know it says which there are. */
  @Override
  public UnboundProcedure loadProcedure(Identifier identifier) {
    String name = identifier.name();
    if (isSystem(identifier.namespace()) && name.equalsIgnoreCase(ExplainJoin.NAME)) {
      return new ExplainJoin();
    }
    if (isSystem(identifier.namespace()) && name.equalsIgnoreCase(ExplainScan.NAME)) {
      return new ExplainScan();
    }
    return operations.procedure(isSystem(identifier.namespace()) ? name : identifier.toString());
  }

  private static boolean holdsFunctions(String[] namespace) {
    return namespace.length == 0 || isSystem(namespace);
  }

  private static boolean isSystem(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase(SYSTEM_NAMESPACE);
  }
}
