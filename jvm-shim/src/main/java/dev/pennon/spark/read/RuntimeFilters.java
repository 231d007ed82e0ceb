package dev.pennon.spark.read;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Or;
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

  /**
   * A filter that keeps at least the rows of this one; empty where there is none short enough.
   *
   * <p>NULL among the values stands for rows of NULL: so it is for the rows that a statement changes,
   * whose values Spark collects, and a join by {@code =} has no NULL to ask for.
   */
  static Optional<Expression> bounded(Predicate filter) {
    if (!filter.name().equals("IN")) {
      return Optional.of(filter);
    }
    Expression column = filter.children()[0];
    List<Expression> all = Arrays.asList(filter.children()).subList(1, filter.children().length);
    List<Expression> values = all.stream().filter(value -> !isNull(value)).toList();
    if (values.size() == all.size()) {
      return among(column, values).map(Expression.class::cast);
    }
    Predicate isNull = new Predicate("IS_NULL", new Expression[] {column});
    return values.isEmpty()
        ? Optional.of(isNull)
        : among(column, values).map(them -> new Or(them, isNull));
  }

  private static Optional<Predicate> among(Expression column, List<Expression> values) {
    if (values.size() <= MAX_VALUES) {
      Stream<Expression> children = Stream.concat(Stream.of(column), values.stream());
      return Optional.of(new Predicate("IN", children.toArray(Expression[]::new)));
    }
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

  private static boolean isNull(Expression value) {
    return value instanceof Literal<?> literal && literal.value() == null;
  }

  private static Object value(Expression literal) {
    return ((Literal<?>) literal).value();
  }
}
