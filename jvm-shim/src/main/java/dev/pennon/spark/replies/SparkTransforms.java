package dev.pennon.spark.replies;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;

/** Spark's transforms to and from the JSON of the messages. */
public final class SparkTransforms {
  private static final String COLUMN = "column";
  private static final String LITERAL = "literal";

  private SparkTransforms() {}

  public static ArrayNode toJson(Transform... transforms) {
    ArrayNode list = Messages.array();
    for (Transform transform : transforms) {
      list.add(toJson(transform));
    }
    return list;
  }

  public static ObjectNode toJson(Transform transform) {
    ObjectNode json = Messages.object().put("function", transform.name());
    ArrayNode arguments = json.putArray("arguments");
    for (Expression argument : transform.arguments()) {
      arguments.add(argumentToJson(transform, argument));
    }
    return json;
  }

  /** Reads a transform with its direction; ascending, NULLs first, where nothing else is said. */
  static SortOrder orderFromJson(JsonNode json) {
    return Expressions.sort(
        transformFromJson(json),
        json.path("desc").asBoolean(false) ? SortDirection.DESCENDING : SortDirection.ASCENDING,
        json.path("nulls_first").asBoolean(true)
            ? NullOrdering.NULLS_FIRST
            : NullOrdering.NULLS_LAST);
  }

  static Transform transformFromJson(JsonNode json) {
    String function = json.path("function").asText();
    List<Expression> arguments = new ArrayList<>();
    json.path("arguments").forEach(argument -> arguments.add(argumentFromJson(argument)));
    if (function.equals("identity")) {
      return Expressions.identity(quoted((NamedReference) arguments.get(0)));
    }
    if (function.equals("bucket") && arguments.get(0) instanceof Literal<?> buckets) {
      String[] columns =
          arguments.stream()
              .skip(1)
              .map(column -> quoted((NamedReference) column))
              .toArray(String[]::new);
      return Expressions.bucket(((Number) buckets.value()).intValue(), columns);
    }
    return Expressions.apply(function, arguments.toArray(new Expression[0]));
  }

  private static String quoted(NamedReference column) {
    return Columns.quoted(column.fieldNames());
  }

  private static ObjectNode argumentToJson(Transform transform, Expression argument) {
    ObjectNode json = Messages.object();
    if (argument instanceof NamedReference column) {
      json.set(COLUMN, Messages.strings(column.fieldNames()));
      return json;
    }
    Object value = argument instanceof Literal<?> literal ? literal.value() : argument.toString();
    boolean isShort = value instanceof Integer || value instanceof Short || value instanceof Byte;
    if (isShort || value instanceof Long) {
      return json.put(LITERAL, ((Number) value).longValue());
    }
    if (value instanceof CharSequence || value instanceof org.apache.spark.unsafe.types.UTF8String) {
      return json.put(LITERAL, value.toString());
    }
    throw WorkerFailure.of(
            "TRANSFORM_ARGUMENT_NOT_SUPPORTED",
            "transform", transform.describe(),
            "argument", String.valueOf(value))
        .raise();
  }

  private static Expression argumentFromJson(JsonNode argument) {
    if (argument.has(COLUMN)) {
      return Expressions.column(Columns.quoted(Messages.toStrings(argument.get(COLUMN))));
    }
    JsonNode literal = argument.path(LITERAL);
    return Expressions.literal(literal.isNumber() ? literal.numberValue() : literal.asText());
  }
}
