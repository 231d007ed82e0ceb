package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerFailure;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The arguments and rows of procedures, between Spark's values and JSON.
 *
 * <p>Text, numbers, booleans, arrays of them, and timestamps as microseconds of UTC.
 */
final class JsonValues {
  private JsonValues() {}

  static JsonNode toJson(Object value, DataType type) {
    if (type instanceof StringType) {
      return TextNode.valueOf(value.toString());
    }
    if (type instanceof BooleanType) {
      return BooleanNode.valueOf((Boolean) value);
    }
    if (type instanceof DoubleType) {
      return DoubleNode.valueOf((Double) value);
    }
    if (value instanceof Number number && isWhole(type)) {
      return LongNode.valueOf(number.longValue());
    }
    if (type instanceof ArrayType list && value instanceof ArrayData values) {
      ArrayNode json = Messages.array();
      for (Object element : values.toObjectArray(list.elementType())) {
        json.add(element == null ? null : toJson(element, list.elementType()));
      }
      return json;
    }
    throw WorkerFailure.protocol("a procedure takes no " + type.simpleString(), null);
  }

  static InternalRow toRow(JsonNode row, StructType schema) {
    StructField[] fields = schema.fields();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      values[i] = fromJson(row.path(i), fields[i].dataType());
    }
    return new GenericInternalRow(values);
  }

  private static Object fromJson(JsonNode json, DataType type) {
    if (json.isNull() || json.isMissingNode()) {
      return null;
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(json.asText());
    }
    if (type instanceof BooleanType) {
      return json.asBoolean();
    }
    if (type instanceof DoubleType) {
      return json.asDouble();
    }
    if (type instanceof IntegerType) {
      return json.asInt();
    }
    if (isWhole(type)) {
      return json.asLong();
    }
    if (type instanceof ArrayType list) {
      Object[] values = new Object[json.size()];
      for (int i = 0; i < values.length; i++) {
        values[i] = fromJson(json.get(i), list.elementType());
      }
      return new GenericArrayData(values);
    }
    throw WorkerFailure.protocol("a procedure gives no " + type.simpleString(), null);
  }

  private static boolean isWhole(DataType type) {
    return type instanceof IntegerType || type instanceof LongType || type instanceof TimestampType;
  }
}
