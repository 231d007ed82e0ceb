package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;

/**
 * ADD, DROP or REPLACE PARTITION FIELD, as a change that Spark hands to the catalog.
 *
 * @param action {@code add}, {@code drop} or {@code replace}
 * @param transform the new field; null for DROP
 * @param field the field that goes: a name (the parts of a column path) or a transform; null for ADD
 * @param name the name after AS, or null
 */
public record PartitionFieldChange(String action, Transform transform, Field field, String name)
    implements TableChange {

  /** How a statement names the field that goes: by its name, or by its transform. */
  public record Field(String[] path, Transform transform) {
    @Override
    public String toString() {
      return transform == null ? String.join(".", path) : transform.describe();
    }

    JsonNode toJson() {
      return transform == null ? Messages.strings(path) : SparkTransforms.toJson(transform);
    }
  }

  /** As a sentence has it: {@code replace partition field a with bucket(4, b)}. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(action).append(" partition field");
    if (field != null) {
      text.append(' ').append(field).append(transform == null ? "" : " with");
    }
    if (transform != null) {
      text.append(' ').append(transform.describe());
    }
    return text.toString();
  }

  ObjectNode addTo(ObjectNode request) {
    request.put("action", action);
    request.set("transform", transform == null ? null : SparkTransforms.toJson(transform));
    request.set("field", field == null ? null : field.toJson());
    return request.put("as", name);
  }
}
