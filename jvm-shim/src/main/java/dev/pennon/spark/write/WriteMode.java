package dev.pennon.spark.write;

import java.util.Locale;

/**
 * What a write does with the rows that are there.
 *
 * @param name the word of the messages
 * @param predicates which rows go, for {@code overwrite}
 */
record WriteMode(String name, String... predicates) {
  static final WriteMode APPEND = new WriteMode("append");
  static final WriteMode OVERWRITE_PARTITIONS = new WriteMode("overwrite_partitions");

  /** Changes single rows; {@code command} is the statement: {@code DELETE}. */
  static WriteMode ofRows(String command) {
    return new WriteMode(command.toLowerCase(Locale.ROOT));
  }

  static WriteMode overwrite(String... predicates) {
    return new WriteMode("overwrite", predicates);
  }

  /** As EXPLAIN shows it: {@code append to lance.shop.orders}. */
  String describe(String table) {
    return switch (name) {
      case "append" -> "append to " + table;
      case "delete", "update", "merge" -> name + " rows of " + table;
      case "overwrite" -> "overwrite " + table + " where " + String.join(" AND ", predicates);
      default -> "overwrite partitions of " + table;
    };
  }
}
