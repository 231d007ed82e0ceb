package dev.pennon.spark.worker;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
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
    try {
      return MAPPER.readTree(json);
    } catch (JsonProcessingException e) {
      throw WorkerFailure.protocol("it is not JSON: " + e.getOriginalMessage(), e);
    }
  }

  public static String print(JsonNode node) {
    try {
      return MAPPER.writeValueAsString(node);
    } catch (JsonProcessingException e) {
      throw WorkerFailure.protocol("it cannot be written as JSON", e);
    }
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

  public static Map<String, String> toStringMap(JsonNode map) {
    Map<String, String> values = new LinkedHashMap<>();
    map.properties().forEach(entry -> values.put(entry.getKey(), entry.getValue().asText()));
    return values;
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
    } catch (java.io.IOException e) {
      throw WorkerFailure.protocol("it is not JSON: " + e.getMessage(), e);
    }
  }
}
