package dev.pennon.spark.replies;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HexFormat;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Values of Spark's internal form as JSON: the defaults of columns, which spec/write_order.py
 * reads, and the arguments of procedures.
 */
public final class JsonValues {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private JsonValues() {}

  public static JsonNode toJson(Object value, DataType type) {
    if (value == null) {
      return JSON.nullNode();
    }
    if (type instanceof StructType struct) {
      return object((InternalRow) value, struct);
    }
    if (type instanceof ArrayType array) {
      return list((ArrayData) value, array.elementType());
    }
    if (type instanceof MapType map) {
      MapData entries = (MapData) value;
      ObjectNode json = JSON.objectNode();
      json.set("keys", list(entries.keyArray(), map.keyType()));
      json.set("values", list(entries.valueArray(), map.valueType()));
      return json;
    }
    return plain(value);
  }

  /** Dates are days and timestamps microseconds, as Spark has them inside. */
  private static JsonNode plain(Object value) {
    if (value instanceof Boolean flag) {
      return JSON.booleanNode(flag);
    }
    if (value instanceof Float || value instanceof Double) {
      double number = ((Number) value).doubleValue();
      return Double.isFinite(number) ? JSON.numberNode(number) : JSON.textNode("" + number);
    }
    if (value instanceof Number number) {
      return JSON.numberNode(number.longValue());
    }
    if (value instanceof Decimal decimal) {
      return JSON.textNode(decimal.toJavaBigDecimal().toPlainString());
    }
    if (value instanceof byte[] bytes) {
      return JSON.textNode(HexFormat.of().formatHex(bytes));
    }
    return JSON.textNode(value.toString());
  }

  private static ObjectNode object(InternalRow row, StructType type) {
    ObjectNode json = JSON.objectNode();
    StructField[] fields = type.fields();
    for (int at = 0; at < fields.length; at++) {
      DataType inner = fields[at].dataType();
      json.set(fields[at].name(), toJson(row.isNullAt(at) ? null : row.get(at, inner), inner));
    }
    return json;
  }

  private static ArrayNode list(ArrayData values, DataType type) {
    ArrayNode json = JSON.arrayNode();
    for (int at = 0; at < values.numElements(); at++) {
      json.add(toJson(values.isNullAt(at) ? null : values.get(at, type), type));
    }
    return json;
  }
}
