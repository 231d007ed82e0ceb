package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/** The requests of one catalog: its options go with each, its failures become Spark's. */
final class CatalogConnection {
  private static final String STORAGE_PREFIX = "storage.";
  private static final String ROOT = "root";
  private static final String IMPLEMENTATION = "implementation";

  private final String name;
  private final ObjectNode catalog;

  CatalogConnection(String name, CaseInsensitiveStringMap options) {
    if (options.get(ROOT) == null) {
      throw WorkerFailure.of("CATALOG_ROOT_MISSING", "catalog", name).raise();
    }
    this.name = name;
    this.catalog = describe(name, options);
  }

  String name() {
    return name;
  }

  /** The catalog as JSON text; holds the storage options, so it is never to be shown. */
  String toJson() {
    return Messages.print(catalog);
  }

  ObjectNode request(String op) {
    checkRoot();
    return Messages.request(op).set("catalog", catalog.deepCopy().set("options", optionsOfNow()));
  }

  ObjectNode request(String op, String[] namespace) {
    return request(op).set("namespace", Messages.strings(namespace));
  }

  ObjectNode request(String op, Identifier identifier) {
    return request(op).set("identifier", toJson(identifier));
  }

  static ArrayNode toJson(Identifier identifier) {
    return Messages.strings(identifier.namespace()).add(identifier.name());
  }

  private static ObjectNode describe(String name, CaseInsensitiveStringMap options) {
    ObjectNode catalog = Messages.object().put("name", name);
    ObjectNode storage = Messages.object();
    for (Map.Entry<String, String> option : options.asCaseSensitiveMap().entrySet()) {
      if (option.getKey().startsWith(STORAGE_PREFIX)) {
        storage.put(option.getKey().substring(STORAGE_PREFIX.length()), option.getValue());
      }
    }
    catalog.put(ROOT, options.get(ROOT));
    catalog.put(IMPLEMENTATION, options.getOrDefault(IMPLEMENTATION, "dir"));
    catalog.set("storage", storage);
    // None in requests about what is loaded already; those that name something fill them in.
    catalog.set("options", Messages.object());
    return catalog;
  }

  /** What the session states of the catalog, by SET, too; of storage options the names alone. */
  private ObjectNode optionsOfNow() {
    String prefix = "spark.sql.catalog." + name + ".";
    ObjectNode options = Messages.object();
    CollectionConverters.asJava(SQLConf.get().getAllConfs())
        .forEach(
            (key, value) -> {
              if (key.startsWith(prefix)) {
                String option = key.substring(prefix.length());
                options.put(option, option.startsWith(STORAGE_PREFIX) ? "" : value);
              }
            });
    return options;
  }

  /** Refuses to go on with one root where the session states another by now. */
  private void checkRoot() {
    String stated = SQLConf.get().getConfString("spark.sql.catalog." + name + "." + ROOT, "");
    String root = catalog.path(ROOT).asText();
    if (!stated.isEmpty() && !stated.equals(root)) {
      throw WorkerFailure.of("CATALOG_ROOT_FIXED", "catalog", name, "root", root, "stated", stated)
          .raise();
    }
  }
}
