package dev.pennon.spark.read;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import scala.math.Ordering;

/** Filters whose values the query found while it ran, of a size that a plan can be made with. */
final class RuntimeFilters {
  /** Beyond this a list is replaced by the range of its values: it would be parsed for seconds. */
  static final int MAX_VALUES = 10_000;

  private RuntimeFilters() {}

  /** A filter that keeps at least the rows of this one; empty where there is none short enough. */
  static Optional<Expression> bounded(Expression filter) {
    if (!(filter instanceof GeneralScalarExpression list)
        || !list.name().equals("IN")
        || list.children().length <= MAX_VALUES + 1) {
      return Optional.of(filter);
    }
    Expression column = list.children()[0];
    List<Expression> values = Arrays.asList(list.children()).subList(1, list.children().length);
    if (!values.stream().allMatch(Literal.class::isInstance)) {
      return Optional.empty();
    }
    DataType type = ((Literal<?>) values.get(0)).dataType();
    if (type instanceof DoubleType || type instanceof FloatType) {
      return Optional.empty();
    }
    Ordering<Object> ordering = TypeUtils.getInterpretedOrdering(type);
    List<Expression> sorted =
        values.stream().sorted((a, b) -> ordering.compare(value(a), value(b))).toList();
    return Optional.of(
        new And(
            new Predicate(">=", new Expression[] {column, sorted.get(0)}),
            new Predicate("<=", new Expression[] {column, sorted.get(sorted.size() - 1)})));
  }

  private static Object value(Expression literal) {
    return ((Literal<?>) literal).value();
  }
}
