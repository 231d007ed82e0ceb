package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import java.util.List;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/** The requests of one catalog: its options go with each, its failures become Spark's. */
final class CatalogConnection {
  private static final List<String> GROUPS = List.of("storage", "namespace");
  private static final String ROOT = "root";
  private static final String IMPLEMENTATION = "implementation";
  private static final String TIME_TYPE = "spark.sql.timeType.enabled";

  private final String name;
  private final CaseInsensitiveStringMap began;
  private final ObjectNode catalog;

  CatalogConnection(String name, CaseInsensitiveStringMap options) {
    if (options.getOrDefault(ROOT, "").isBlank()) {
      throw WorkerFailure.of("CATALOG_ROOT_MISSING", "catalog", name).raise();
    }
    this.name = name;
    this.began = options;
    this.catalog = describe(name, options);
  }

  String name() {
    return name;
  }

  /** The catalog as JSON text, storage options included. */
  SecretText described() {
    return new SecretText(Messages.print(catalog));
  }

  ObjectNode request(String op) {
    ObjectNode options = Messages.object();
    CollectionConverters.asJava(SQLConf.get().getAllConfs())
        .forEach((setting, value) -> addStated(options, setting, value));
    boolean hasTime = SQLConf.get().getConfString(TIME_TYPE, "false").equals("true");
    ObjectNode stated = catalog.deepCopy().put("has_time", hasTime).set("options", options);
    return Messages.request(op).set("catalog", stated);
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
    ObjectNode catalog = Messages.object().put("name", name).put(ROOT, options.get(ROOT));
    catalog.put(IMPLEMENTATION, options.getOrDefault(IMPLEMENTATION, "dir")).put("has_time", false);
    for (String group : GROUPS) {
      ObjectNode values = catalog.putObject(group);
      options.asCaseSensitiveMap().keySet().stream()
          .filter(option -> option.startsWith(group + "."))
          .forEach(option -> values.put(option.substring(group.length() + 1), options.get(option)));
    }
    // None in requests about what is loaded already; those that name something fill them in.
    return catalog.set("options", Messages.object());
  }

  /**
   * Adds what the session states of the catalog, by SET, too; of its storage's and its
   * implementation's options the names alone.
   * Refuses to go on with what the catalog began with where the session states another by now.
   */
  private void addStated(ObjectNode options, String setting, String value) {
    String prefix = "spark.sql.catalog." + name + ".";
    String option = setting.startsWith(prefix) ? setting.substring(prefix.length()) : "";
    boolean isStorage = GROUPS.contains(option.split("[.]", 2)[0]);
    boolean isKept = value.equals(began.get(option));
    if (option.equals(ROOT) && !isKept && !value.isEmpty()) {
      throw WorkerFailure.of(
              "CATALOG_ROOT_FIXED", "catalog", name, "root", began.get(ROOT), "stated", value)
          .raise();
    } else if (isStorage && !isKept) {
      throw WorkerFailure.of("CATALOG_STORAGE_FIXED", "catalog", name, "option", option).raise();
    } else if (!option.isEmpty()) {
      options.put(option, isStorage ? "" : value);
    }
  }
}
