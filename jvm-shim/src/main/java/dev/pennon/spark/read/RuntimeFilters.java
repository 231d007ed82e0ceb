package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.expressions.ConnectorPredicates;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Filters whose values the query found while it ran, as the worker reads them.
 *
 * @param keys columns and the values that they let pass
 * @param predicates texts of the others, which compare with the value of a subquery
 * @param rowKeys the keys that rows are looked up in: of a column that decides about partitions all
 *     rows pass; null for none
 */
record RuntimeFilters(List<String> keys, List<String> predicates, String rowKeys) {
  /** They are sent with each task, and the worker keeps the last ones. */
  private static final int MOST_LETTERS = 16 << 20;

  static final RuntimeFilters NONE = new RuntimeFilters(List.of(), List.of(), null);

  /** Those on columns of a table, of which some decide about partitions. */
  static RuntimeFilters of(StructType schema, Set<NamedReference> ofPartitions, Predicate... all) {
    List<String> allKeys = new ArrayList<>();
    List<String> texts = new ArrayList<>();
    String ofRows = null;
    for (Predicate filter : all) {
      String written = filter.name().equals("IN") ? keys(filter) : null;
      if (written != null) {
        allKeys.add(written);
        ofRows = ofPartitions.contains(filter.children()[0]) ? ofRows : written;
      } else if (!filter.name().equals("IN")) {
        texts.addAll(ConnectorPredicates.texts(schema, filter));
      }
    }
    return new RuntimeFilters(allKeys, texts, ofRows);
  }

  ObjectNode addTo(ObjectNode request) {
    request.set("row_keys", Messages.strings(keys));
    request.set("predicates", Messages.strings(predicates));
    return request;
  }

  /** The column of an IN and the values that it lets pass; null where they are not written. */
  private static String keys(Predicate filter) {
    List<Expression> children = Arrays.asList(filter.children());
    if (!(children.get(0) instanceof NamedReference column) || column.fieldNames().length > 1) {
      return null;
    }
    ObjectNode keys = Messages.object().put("column", column.fieldNames()[0]).put("has_null", false);
    ArrayNode numbers = keys.putArray("numbers");
    ArrayNode texts = keys.putArray("texts");
    for (Expression child : children.subList(1, children.size())) {
      Literal<?> literal = (Literal<?>) child;
      if (literal.value() == null) {
        keys.put("has_null", true);
      } else if (literal.value() instanceof Number number) {
        numbers.add(number.longValue());
      } else if (literal.value() instanceof UTF8String text
          // Of what has a collation other texts are equal, too.
          && !(text.isValid() && literal.dataType().equals(DataTypes.StringType))) {
        return null;
      } else {
        texts.add(literal.value().toString());
      }
    }
    String written = Messages.print(keys);
    return written.length() > MOST_LETTERS ? null : written;
  }
}
