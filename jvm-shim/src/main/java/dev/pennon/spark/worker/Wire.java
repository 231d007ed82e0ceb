package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.failures.WorkerFailure;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Iterator;

/**
 * The messages as the Python package declares them: each request is checked before it goes, each
 * reply as it arrives.
 *
 * <p>{@code wire.json} is written from those declarations (<code>make wire</code>). It names the
 * request and the reply of each operation, and for each message the type of each field: {@code
 * string}, {@code integer}, {@code boolean}, {@code any}, {@code operator} (the message that its
 * {@code node} names) or another message, then {@code []} for a list, {@code {}} for an object with
 * such values, {@code ?} where null is right.
 */
public final class Wire {
  private static final byte[] TEXT = text();
  private static final JsonNode DECLARED = Messages.fromBytes(TEXT);

  /** A digest of the declaration; the package has the same in {@code worker/wire/protocol.py}. */
  static final String PROTOCOL = digest(TEXT);

  private Wire() {}

  private static byte[] text() {
    try (InputStream file = Wire.class.getResourceAsStream("wire.json")) {
      return file.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Whether an operation changes nothing. */
  static boolean isRepeatable(String op) {
    return DECLARED.get("repeatable").has(op);
  }

  /** Refuses a request with a field too many, too few, or of another type than declared. */
  static void checkRequest(String op, JsonNode request) {
    check(named("requests", op), request);
  }

  /** As {@link #checkRequest}, for the reply. */
  static void checkReply(String op, JsonNode reply) {
    check(named("replies", op), reply);
  }

  private static String digest(byte[] text) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(text);
      return HexFormat.of().formatHex(digest, 0, 6);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String named(String table, String key) {
    JsonNode message = DECLARED.get(table).get(key);
    if (message == null) {
      throw WorkerFailure.protocol("no " + key + " is declared among the " + table, null);
    }
    return message.asText();
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
              JsonNode stated = value.get(field.getKey());
              if (stated == null) {
                throw WorkerFailure.protocol(
                    "a " + message + " has no field " + field.getKey(), null);
              }
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
    } else if (type.equals("operator")) {
      check(named("operators", value.path("node").asText()), value);
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
