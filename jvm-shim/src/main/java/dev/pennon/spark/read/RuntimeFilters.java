package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Filters whose values the query found while it ran, as the worker reads them. */
final class RuntimeFilters {
  /** They are sent with each task, and the worker keeps the last ones. */
  private static final int MOST_LETTERS = 16 << 20;

  private RuntimeFilters() {}

  /** The column of a filter and the values that it lets pass; null where they are not written. */
  static String keys(Predicate filter) {
    List<Expression> children = Arrays.asList(filter.children());
    String[] path = ((NamedReference) children.get(0)).fieldNames();
    if (!filter.name().equals("IN") || path.length > 1) {
      return null;
    }
    ObjectNode keys = Messages.object().put("column", path[0]).put("has_null", false);
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
