package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Iterator;

/**
 * The replies as the Python package declares them: each is checked as it arrives.
 *
 * <p>{@code wire.json} is written from those declarations (<code>make wire</code>). It names the
 * reply to each operation, and for each message the type of each field: {@code string}, {@code
 * integer}, {@code boolean}, {@code any} or another message, then {@code []} for a list, {@code {}}
 * for an object with such values, {@code ?} where null is right.
 */
public final class Wire {
  private static final JsonNode DECLARED = declared();

  private Wire() {}

  private static JsonNode declared() {
    try (InputStream file = Wire.class.getResourceAsStream("wire.json")) {
      return Messages.fromBytes(file.readAllBytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Refuses a reply with a field too many, too few, or of another type than declared. */
  static void checkReply(String op, JsonNode reply) {
    JsonNode message = DECLARED.get("replies").get(op);
    if (message == null) {
      throw WorkerFailure.protocol("no reply to " + op + " is declared", null);
    }
    check(message.asText(), reply);
  }

  /** Refuses a message that is not as declared; the failure names message and field. */
  public static void check(String message, JsonNode value) {
    JsonNode fields = DECLARED.get("messages").get(message);
    if (!value.isObject()) {
      throw WorkerFailure.protocol("a " + message + " is no object", null);
    }
    for (Iterator<String> names = value.fieldNames(); names.hasNext(); ) {
      String name = names.next();
      if (!fields.has(name)) {
        throw WorkerFailure.protocol("a " + message + " has the unknown field " + name, null);
      }
    }
    fields
        .properties()
        .forEach(
            field -> {
              JsonNode stated = Messages.field(value, message, field.getKey());
              check(field.getValue().asText(), stated, message + "." + field.getKey());
            });
  }

  private static void check(String type, JsonNode value, String where) {
    String inner = type.substring(0, Math.max(0, type.length() - 2));
    if (type.endsWith("?")) {
      if (!value.isNull()) {
        check(type.substring(0, type.length() - 1), value, where);
      }
    } else if (type.endsWith("[]") && value.isArray() || type.endsWith("{}") && value.isObject()) {
      value.forEach(item -> check(inner, item, where));
    } else if (DECLARED.get("messages").has(type)) {
      check(type, value);
    } else if (!isOf(type, value)) {
      // The value itself may be a storage option.
      throw WorkerFailure.protocol(where + " is " + value.getNodeType() + ", not " + type, null);
    }
  }

  private static boolean isOf(String type, JsonNode value) {
    return switch (type) {
      case "string" -> value.isTextual();
      case "integer" -> value.isIntegralNumber();
      case "boolean" -> value.isBoolean();
      case "any" -> true;
      default -> false;
    };
  }
}
