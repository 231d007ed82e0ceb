package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The numbers under which the worker is told of columns, and of the fields of struct columns.
 *
 * <p>A column has its expression id; a field of a struct, which has none, a negative number.
 */
final class ColumnIds {
  private record Place(long column, List<String> path) {
    Place field(String name) {
      List<String> longer = new ArrayList<>(path);
      longer.add(name);
      return new Place(column, List.copyOf(longer));
    }
  }

  private final Map<Place, Long> numbers = new HashMap<>();
  private final Map<Long, Expression> fields = new HashMap<>();

  /** The number of a column or of a field in one; null for anything else. */
  Long of(Expression expression) {
    Place place = place(expression);
    if (place == null) {
      return null;
    }
    long number = number(place);
    if (number < 0) {
      fields.putIfAbsent(number, expression);
    }
    return number;
  }

  /** The numbers of those that are columns or fields in one. */
  ArrayNode all(Seq<Expression> expressions) {
    ArrayNode known = Messages.array();
    items(expressions).stream().map(this::of).filter(Objects::nonNull).forEach(id -> known.add(id));
    return known;
  }

  /** The field of a struct that was asked for under this number. */
  Expression field(long number) {
    return fields.get(number);
  }

  /** The numbers of the fields in a scan's column, with the names that lead to each. */
  ArrayNode fieldsIn(Attribute column) {
    ArrayNode fields = Messages.array();
    eachIn(
        new Place(column.exprId().id(), List.of()),
        column.dataType(),
        place -> {
          ArrayNode names = Messages.array().add(column.name());
          place.path().forEach(names::add);
          fields.add(Messages.array().add(number(place)).add(names));
        });
    return fields;
  }

  /** For each named expression that is a column or a field of one, its number and that one's. */
  ArrayNode renamed(Seq<NamedExpression> expressions) {
    ArrayNode pairs = Messages.array();
    for (NamedExpression named : items(expressions)) {
      Expression value = named instanceof Alias alias ? alias.child() : (Expression) named;
      Place old = place(value);
      if (old == null) {
        continue;
      }
      long column = named.exprId().id();
      pairs.add(Messages.array().add(column).add(number(old)));
      int length = old.path().size();
      eachIn(
          old,
          value.dataType(),
          place -> {
            List<String> below = place.path().subList(length, place.path().size());
            pairs.add(Messages.array().add(number(new Place(column, below))).add(number(place)));
          });
    }
    return pairs;
  }

  /** Visits all fields in a place that is a struct. */
  private static void eachIn(Place place, DataType type, Consumer<Place> visitor) {
    if (type instanceof StructType struct) {
      for (StructField field : struct.fields()) {
        Place inner = place.field(field.name());
        visitor.accept(inner);
        eachIn(inner, field.dataType(), visitor);
      }
    }
  }

  private static Place place(Expression expression) {
    if (expression instanceof Attribute attribute) {
      return new Place(attribute.exprId().id(), List.of());
    }
    if (expression instanceof GetStructField get) {
      Place struct = place(get.child());
      return struct == null ? null : struct.field(get.extractFieldName());
    }
    return null;
  }

  private long number(Place place) {
    if (place.path().isEmpty()) {
      return place.column();
    }
    return numbers.computeIfAbsent(place, unknown -> -1L - numbers.size());
  }
}
