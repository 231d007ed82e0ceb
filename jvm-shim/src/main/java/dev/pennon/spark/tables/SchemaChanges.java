package dev.pennon.spark.tables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.replies.JsonValues;
import dev.pennon.spark.worker.Messages;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.DefaultValue;
import org.apache.spark.sql.connector.catalog.TableChange;

/** ALTER TABLE as Spark hands it over, as a message. */
public final class SchemaChanges {
  private static final String CHANGE = "change";
  private static final String COLUMN = "column";

  private SchemaChanges() {}

  public static ArrayNode toJson(TableChange... changes) {
    ArrayNode list = Messages.array();
    for (TableChange change : changes) {
      list.add(toJson(change));
    }
    return list;
  }

  private static ObjectNode toJson(TableChange change) {
    if (change instanceof TableChange.SetProperty set) {
      return named("set_property").put("property", set.property()).put("value", set.value());
    }
    if (change instanceof TableChange.RemoveProperty remove) {
      return named("remove_property").put("property", remove.property());
    }
    if (change instanceof TableChange.ColumnChange column) {
      ObjectNode json = columnChange(column);
      json.set(COLUMN, Messages.strings(column.fieldNames()));
      return json;
    }
    throw new IllegalArgumentException(
        "Pennon tables do not support " + change.getClass().getSimpleName());
  }

  private static ObjectNode columnChange(TableChange.ColumnChange change) {
    if (change instanceof TableChange.AddColumn add) {
      return addColumn(add);
    }
    if (change instanceof TableChange.RenameColumn rename) {
      return named("rename_column").put("new_name", rename.newName());
    }
    if (change instanceof TableChange.UpdateColumnType type) {
      return named("update_type").put("type", type.newDataType().json());
    }
    if (change instanceof TableChange.UpdateColumnNullability nullability) {
      return named("update_nullability").put("nullable", nullability.nullable());
    }
    if (change instanceof TableChange.UpdateColumnComment comment) {
      return named("update_comment").put("comment", comment.newComment());
    }
    if (change instanceof TableChange.UpdateColumnDefaultValue value) {
      DefaultValue current = value.newCurrentDefault();
      return named("update_default").put("default", current == null ? null : current.getSql());
    }
    if (change instanceof TableChange.UpdateColumnPosition position) {
      return position(named("update_position"), position.position());
    }
    if (change instanceof TableChange.DeleteColumn delete) {
      return named("delete_column").put("if_exists", delete.ifExists());
    }
    throw new IllegalArgumentException(
        "Pennon tables do not support " + change.getClass().getSimpleName());
  }

  private static ObjectNode addColumn(TableChange.AddColumn add) {
    ObjectNode json =
        named("add_column")
            .put("type", add.dataType().json())
            .put("nullable", add.isNullable())
            .put("comment", add.comment());
    ColumnDefaultValue value = add.defaultValue();
    if (value != null) {
      json.put("default", value.getSql());
      json.set("initial", JsonValues.toJson(value.getValue().value(), value.getValue().dataType()));
    }
    return position(json, add.position());
  }

  /** {@code {"first": true}}, {@code {"after": name}} or null: at the end. */
  private static ObjectNode position(ObjectNode json, TableChange.ColumnPosition position) {
    if (position instanceof TableChange.First) {
      json.putObject("position").put("first", true);
    } else if (position instanceof TableChange.After after) {
      json.putObject("position").put("after", after.column());
    } else {
      json.putNull("position");
    }
    return json;
  }

  private static ObjectNode named(String change) {
    return Messages.object().put(CHANGE, change);
  }
}
