package dev.pennon.spark.worker;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.failures.WorkerFailure;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** The JSON of requests and replies: how it is made, read and taken apart. */
public final class Messages {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Messages() {}

  /** Starts a request of one operation, for example {@code list_tables}. */
  public static ObjectNode request(String op) {
    return object().put("op", op);
  }

  public static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  public static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  public static JsonNode parse(String json) {
    return fromBytes(json.getBytes(StandardCharsets.UTF_8));
  }

  /** A value of Java, lists and numbers of every kind among them, as JSON. */
  public static JsonNode value(Object value) {
    return MAPPER.valueToTree(value);
  }

  public static String print(JsonNode node) {
    return new String(toBytes(node), StandardCharsets.UTF_8);
  }

  public static ArrayNode strings(Iterable<String> values) {
    ArrayNode list = array();
    values.forEach(list::add);
    return list;
  }

  public static ArrayNode strings(String... values) {
    return strings(Arrays.asList(values));
  }

  public static ObjectNode strings(Map<String, String> values) {
    ObjectNode map = object();
    values.forEach(map::put);
    return map;
  }

  public static String[] toStrings(JsonNode list) {
    List<String> values = new ArrayList<>();
    list.forEach(value -> values.add(value.asText()));
    return values.toArray(new String[0]);
  }

  static byte[] toBytes(JsonNode node) {
    try {
      return MAPPER.writeValueAsBytes(node);
    } catch (JsonProcessingException e) {
      throw WorkerFailure.protocol("it cannot be written as JSON", e);
    }
  }

  static JsonNode fromBytes(byte[] json) {
    try {
      return MAPPER.readTree(json);
    } catch (IOException e) {
      // What else its message has may show a storage option.
      String why = e instanceof JsonProcessingException known ? known.getOriginalMessage() : "";
      throw WorkerFailure.protocol("it is not JSON: " + why, e);
    }
  }
}
