package dev.pennon.spark.thrift;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.compat.SessionCatalogs;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StringType;

/**
 * Namespaces, tables and columns of a catalog as the rows of JDBC's DatabaseMetaData.
 *
 * <p>Patterns are regular expressions, and ignore case as Spark's names do.
 */
record CatalogListing(TableCatalog tables, SupportsNamespaces namespaces) {
  static final String TABLE = "TABLE";
  /** The last five are of types that are referred to. */
  private static final int TABLE_COLUMNS = 10;

  private static final int RADIX = 10;
  private static final String SESSION_CATALOG = "spark_catalog";

  /** The catalog of a name, or the session's; null for spark_catalog, of which Spark answers. */
  static CatalogListing of(SparkSession session, String name) {
    SessionCatalogs catalogs = SessionCatalogs.of(session);
    boolean isNamed = name != null && !name.isEmpty() && catalogs.has(name);
    CatalogPlugin asked = isNamed ? catalogs.get(name) : catalogs.current();
    return !asked.name().equals(SESSION_CATALOG)
            && asked instanceof TableCatalog tables
            && asked instanceof SupportsNamespaces namespaces
        ? new CatalogListing(tables, namespaces)
        : null;
  }

  static List<Object[]> catalogs(SparkSession session) {
    String current = SessionCatalogs.of(session).current().name();
    return Stream.of(current, SESSION_CATALOG).distinct().map(name -> new Object[] {name}).toList();
  }

  List<Object[]> schemas(String pattern) throws AnalysisException {
    List<Object[]> rows = new ArrayList<>();
    for (String[] namespace : matching(pattern)) {
      rows.add(new Object[] {shown(namespace), tables.name()});
    }
    return rows;
  }

  List<Object[]> tables(String schemas, String pattern) throws AnalysisException {
    List<Object[]> rows = new ArrayList<>();
    List<Identifier> names = matching(schemas, pattern);
    Iterator<Optional<Table>> loaded = loaded(names).iterator();
    for (Identifier name : names) {
      String schema = shown(name.namespace());
      String comment =
          loaded.next().map(table -> table.properties().get(TableCatalog.PROP_COMMENT)).orElse("");
      Object[] ofTable = {tables.name(), schema, name.name(), TABLE, comment};
      rows.add(Arrays.copyOf(ofTable, TABLE_COLUMNS));
    }
    return rows;
  }

  List<Object[]> columns(String schemas, String pattern, String columns) throws AnalysisException {
    Pattern names = Pattern.compile(columns, Pattern.CASE_INSENSITIVE);
    List<Object[]> rows = new ArrayList<>();
    List<Identifier> tableNames = matching(schemas, pattern);
    Iterator<Optional<Table>> loaded = loaded(tableNames).iterator();
    for (Identifier name : tableNames) {
      Column[] all = loaded.next().map(Table::columns).orElse(new Column[0]);
      for (int at = 0; at < all.length; at++) {
        if (names.matcher(all[at].name()).matches()) {
          rows.add(row(name, all[at], at));
        }
      }
    }
    return rows;
  }

  private Object[] row(Identifier table, Column column, int at) {
    DataType type = column.dataType();
    DecimalType decimal = type instanceof DecimalType stated ? stated : null;
    Integer size = decimal == null ? null : decimal.precision();
    Integer digits = decimal == null ? null : decimal.scale();
    int isNullable = column.nullable() ? 1 : 0;
    String comment = column.comment() == null ? "" : column.comment();
    String schema = shown(table.namespace());
    String yes = column.nullable() ? "YES" : "NO";
    // In JDBC's order: the gaps are of buffers, defaults, SQL's own types and references.
    Object[] named = {tables.name(), schema, table.name(), column.name()};
    Object[] typed = {jdbcType(type), type.sql(), size, null, digits, RADIX, isNullable, comment};
    Object[] placed = {null, null, null, null, at + 1, yes, null, null, null, null, "NO"};
    return Stream.of(named, typed, placed).flatMap(Stream::of).toArray();
  }

  private static int jdbcType(DataType type) {
    var common = JdbcUtils.getCommonJDBCType(type);
    // The one of strings is for text without bounds, which tools show as a file.
    boolean isText = type instanceof StringType || common.isEmpty();
    return isText ? Types.VARCHAR : common.get().jdbcNullType();
  }

  private List<Identifier> matching(String schemas, String pattern) throws AnalysisException {
    Pattern names = Pattern.compile(pattern, Pattern.CASE_INSENSITIVE);
    List<Identifier> identifiers = new ArrayList<>();
    for (String[] namespace : matching(schemas)) {
      identifiers.addAll(List.of(tables.listTables(namespace)));
    }
    identifiers.removeIf(table -> !names.matcher(table.name()).matches());
    return identifiers;
  }

  private List<String[]> matching(String pattern) throws AnalysisException {
    Pattern names = Pattern.compile(pattern, Pattern.CASE_INSENSITIVE);
    List<String[]> below = new ArrayList<>(List.of(namespaces.listNamespaces()));
    for (int at = 0; at < below.size(); at++) {
      below.addAll(List.of(namespaces.listNamespaces(below.get(at))));
    }
    below.removeIf(namespace -> !names.matcher(shown(namespace)).matches());
    return below;
  }

  /** Tables as they are now, in their order; nothing of one that cannot be read, or was dropped. */
  private List<Optional<Table>> loaded(List<Identifier> names) {
    return tables instanceof WorkerCatalog ours
        ? ours.loadTables(names)
        : names.stream().map(this::loaded).toList();
  }

  private Optional<Table> loaded(Identifier name) {
    try {
      return Optional.of(tables.loadTable(name));
    } catch (AnalysisException e) {
      return Optional.empty();
    }
  }

  private static String shown(String[] namespace) {
    return String.join(".", namespace);
  }
}
