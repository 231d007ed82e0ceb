package dev.pennon.spark;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.compat.SessionCatalogs;
import dev.pennon.spark.failures.WorkerFailure;
import java.io.File;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/**
 * {@code spark.read.format("pennon").load(…)} and {@code df.write.format("pennon").save(…)}, and the
 * same with {@code readStream} and {@code writeStream}: a path, or the name of a table, in one of the
 * session's Pennon catalogs.
 *
 * <p>The catalog is the one that the option {@code catalog} or the table's name says, else the
 * current one, else the first by name; a path means the same in each, storage options aside. A name
 * of one part is in the current namespace, where the catalog is the current one.
 */
public class PennonSource implements SupportsCatalogOptions, DataSourceRegister {
  private static final String SETTINGS = "spark.sql.catalog.";

  @Override
  public String shortName() {
    return "pennon";
  }

  @Override
  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    List<String> name = name(options);
    int last = name.size() - 1;
    boolean isAlone = last == 0 && !isPath(name.get(0));
    SessionCatalogs session = SessionCatalogs.of(SparkSession.active());
    if (isAlone && session.current().name().equals(extractCatalog(options))) {
      return Identifier.of(session.currentNamespace(), name.get(0));
    }
    int first = last > 0 && isCatalog(name.get(0)) ? 1 : 0;
    return Identifier.of(name.subList(first, last).toArray(String[]::new), name.get(last));
  }

  @Override
  public String extractCatalog(CaseInsensitiveStringMap options) {
    String stated = options.get("catalog");
    if (stated != null) {
      return stated;
    }
    List<String> name = name(options);
    if (name.size() > 1 && isCatalog(name.get(0))) {
      return name.get(0);
    }
    if (SessionCatalogs.of(SparkSession.active()).current() instanceof PennonCatalog current) {
      return current.name();
    }
    return CollectionConverters.asJava(conf().getAllConfs()).keySet().stream()
        .filter(key -> key.startsWith(SETTINGS))
        .map(key -> key.substring(SETTINGS.length()))
        .filter(PennonSource::isCatalog)
        .min(Comparator.naturalOrder())
        .orElseThrow(() -> WorkerFailure.of("CATALOG_NOT_CONFIGURED").raise());
  }

  @Override
  public Optional<String> extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }

  @Override
  public Optional<String> extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  /** The parts of the name of what is loaded or saved, or its path; a local one may be file:/path. */
  private static List<String> name(CaseInsensitiveStringMap options) {
    String stated = options.getOrDefault("path", "").strip().replaceFirst("^file:/+", "/");
    if (stated.isEmpty()) {
      throw WorkerFailure.of("SOURCE_NOT_NAMED", "why", "no path is given, or several").raise();
    }
    if (isPath(stated)) {
      boolean isWhole = stated.startsWith("/") || stated.contains("://");
      return List.of(isWhole ? stated : new File(stated).getAbsolutePath());
    }
    try {
      return items(SparkSession.active().sessionState().sqlParser().parseMultipartIdentifier(stated));
    } catch (ParseException e) {
      String why = "'" + stated + "' is neither a path nor a table's name";
      throw WorkerFailure.of("SOURCE_NOT_NAMED", "why", why).raise();
    }
  }

  private static boolean isPath(String stated) {
    return stated.contains("/");
  }

  /** Of the default session in a thread that has none of its own. */
  private static SQLConf conf() {
    return SparkSession.active().sessionState().conf();
  }

  private static boolean isCatalog(String name) {
    return WorkerCatalog.isConfigured(conf(), name);
  }

  // Batches are asked of the catalog by Spark itself; of streams it asks the source.

  @Override
  @SuppressWarnings("deprecation")
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return table(options).schema();
  }

  @Override
  public Transform[] inferPartitioning(CaseInsensitiveStringMap options) {
    return table(options).partitioning();
  }

  @Override
  public Table getTable(
      StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return table(new CaseInsensitiveStringMap(properties));
  }

  private Table table(CaseInsensitiveStringMap options) {
    String name = extractCatalog(options);
    if (!isCatalog(name)) {
      throw WorkerFailure.of("CATALOG_NOT_CONFIGURED").raise();
    }
    CatalogPlugin catalog = SessionCatalogs.of(SparkSession.active()).get(name);
    return ((PennonCatalog) catalog).loadTable(extractIdentifier(options));
  }
}
