package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

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
    ObjectNode request = Messages.request(op);
    request.set("catalog", catalog);
    return request;
  }

  ObjectNode request(String op, String[] namespace) {
    ObjectNode request = request(op);
    request.set("namespace", Messages.strings(namespace));
    return request;
  }

  ObjectNode request(String op, Identifier identifier) {
    ObjectNode request = request(op);
    request.set("identifier", toJson(identifier));
    return request;
  }

  static ArrayNode toJson(Identifier identifier) {
    return Messages.strings(identifier.namespace()).add(identifier.name());
  }

  private static ObjectNode describe(String name, CaseInsensitiveStringMap options) {
    ObjectNode catalog = Messages.object().put("name", name);
    ObjectNode storage = Messages.object();
    ObjectNode settings = Messages.object();
    for (Map.Entry<String, String> option : options.asCaseSensitiveMap().entrySet()) {
      String key = option.getKey();
      if (key.startsWith(STORAGE_PREFIX)) {
        storage.put(key.substring(STORAGE_PREFIX.length()), option.getValue());
      } else if (!key.equalsIgnoreCase(ROOT) && !key.equalsIgnoreCase(IMPLEMENTATION)) {
        settings.put(key, option.getValue());
      }
    }
    catalog.put(ROOT, options.get(ROOT));
    catalog.put(IMPLEMENTATION, options.getOrDefault(IMPLEMENTATION, "dir"));
    catalog.set("storage", storage);
    catalog.set("settings", settings);
    return catalog;
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
