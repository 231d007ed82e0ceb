package dev.pennon.spark.write;

/**
 * What a write does with the rows that are there.
 *
 * @param name the word of the messages
 * @param predicates which rows go, for {@code overwrite}
 */
record WriteMode(String name, String... predicates) {
  static final WriteMode APPEND = new WriteMode("append");
  static final WriteMode OVERWRITE_PARTITIONS = new WriteMode("overwrite_partitions");

  static WriteMode overwrite(String... predicates) {
    return new WriteMode("overwrite", predicates);
  }

  /** As EXPLAIN shows it: {@code append to lance.shop.orders}. */
  String describe(String table) {
    return switch (name) {
      case "append" -> "append to " + table;
      case "overwrite" -> "overwrite " + table + " where " + String.join(" AND ", predicates);
      default -> "overwrite partitions of " + table;
    };
  }
}
