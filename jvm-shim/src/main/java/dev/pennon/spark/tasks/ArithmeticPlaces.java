package dev.pennon.spark.tasks;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Trees.nodes;

import dev.pennon.spark.failures.WorkerFailure;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkArithmeticException;
import org.apache.spark.sql.catalyst.expressions.Abs;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Divide;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IntegralDivide;
import org.apache.spark.sql.catalyst.expressions.Pmod;
import org.apache.spark.sql.catalyst.expressions.Remainder;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Where in a fragment arithmetic can fail, so that its failure in the worker is the exception that
 * Spark raises: of its class, with its condition, its message and, where no other place can be meant,
 * the place in the query.
 */
public record ArithmeticPlaces(List<Place> places) implements Serializable {
  private static final long serialVersionUID = 1L;

  static final ArithmeticPlaces NONE = new ArithmeticPlaces(List.of());

  private static final String ANSI = "\"spark.sql.ansi.enabled\"";
  private static final Map<String, String> SUFFIXES = Map.of("TINYINT", "Y", "SMALLINT", "S", "BIGINT", "L");

  /** How a value fails. */
  private enum Kind {
    DIVISION, REMAINDER, CAST, OVERFLOW, SUM
  }

  /**
   * An expression that can fail.
   *
   * @param name the function's
   * @param source the type that a cast reads
   * @param type the type of the value
   */
  private record Place(Kind kind, String name, String source, DataType type, QueryContext context)
      implements Serializable {
    private static final long serialVersionUID = 1L;
  }

  public static ArithmeticPlaces of(LogicalPlan plan) {
    List<Place> places = new ArrayList<>();
    for (LogicalPlan node : nodes(plan)) {
      for (Expression expression : items(node.expressions())) {
        nodes(expression).stream().map(ArithmeticPlaces::place).forEach(places::addAll);
      }
    }
    return new ArithmeticPlaces(places);
  }

  /** The place of an expression that can fail; none for any other. */
  private static List<Place> place(Expression expression) {
    Kind kind = kind(expression);
    if (kind == null) {
      return List.of();
    }
    String source = expression instanceof Cast cast ? cast.child().dataType().sql() : "";
    DataType type = expression.dataType();
    QueryContext context = expression.origin().context();
    return List.of(new Place(kind, expression.prettyName(), source, type, context));
  }

  private static Kind kind(Expression expression) {
    if (expression instanceof Divide || expression instanceof IntegralDivide) {
      return Kind.DIVISION;
    }
    if (expression instanceof Remainder || expression instanceof Pmod) {
      return Kind.REMAINDER;
    }
    if (expression instanceof Cast cast) {
      boolean isWider = Cast$.MODULE$.canUpCast(cast.child().dataType(), cast.dataType());
      return isWider ? null : Kind.CAST;
    }
    boolean isSum = expression instanceof Sum || expression instanceof Average;
    if (isSum && expression.dataType() instanceof DecimalType) {
      return Kind.SUM;
    }
    boolean isSigned = expression instanceof UnaryMinus || expression instanceof Abs;
    boolean canOverflow = expression instanceof BinaryArithmetic || expression instanceof Sum;
    return isSigned || canOverflow ? Kind.OVERFLOW : null;
  }

  /** Throws the failure of a task as Spark's own where it is one of arithmetic. */
  RuntimeException raise(WorkerFailure failure) {
    RuntimeException ofSpark = null;
    try {
      ofSpark = ofSpark(failure);
    } catch (RuntimeException notOfThisVersion) {
      failure.addSuppressed(notOfThisVersion);
    }
    if (ofSpark != null) {
      throw ofSpark;
    }
    return failure.raiseInTask();
  }

  private RuntimeException ofSpark(WorkerFailure failure) {
    switch (failure.condition()) {
      case "DIVIDE_BY_ZERO":
        List<Place> divisions = places(List.of(Kind.DIVISION, Kind.REMAINDER), "");
        boolean isRemainder =
            !divisions.isEmpty() && divisions.stream().allMatch(place -> place.kind == Kind.REMAINDER);
        return isRemainder
            ? QueryExecutionErrors.remainderByZeroError(context(divisions))
            : QueryExecutionErrors.divideByZeroError(context(divisions));
      case "ARITHMETIC_OVERFLOW":
        return overflow(
            failure.parameters().getOrDefault("value", ""),
            failure.parameters().getOrDefault("type", ""));
      default:
        return null;
    }
  }

  private RuntimeException overflow(String value, String type) {
    List<Place> matches = places(List.of(Kind.CAST, Kind.OVERFLOW), type);
    List<Place> sums = places(List.of(Kind.SUM), "");
    if (!sums.isEmpty() && (value.isEmpty() || matches.isEmpty())) { // sums often name no value
      String instead = sums.size() == 1 ? "try_" + sums.get(0).name : "";
      String message = "Overflow in sum of decimals";
      return QueryExecutionErrors.arithmeticOverflowError(message, instead, context(sums));
    }
    Place only = matches.size() == 1 ? matches.get(0) : null;
    if (only != null && only.type instanceof DecimalType decimal) {
      Map<String, String> parameters = new HashMap<>(Map.of("value", value, "config", ANSI));
      parameters.put("precision", String.valueOf(decimal.precision()));
      parameters.put("scale", String.valueOf(decimal.scale()));
      return exception("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", parameters, matches);
    }
    if (only != null && only.kind == Kind.CAST) {
      // Spark names no place for it either.
      Map<String, String> parameters = new HashMap<>(Map.of("value", value + suffix(only.source)));
      parameters.put("sourceType", '"' + only.source + '"');
      parameters.put("targetType", '"' + only.type.sql() + '"');
      parameters.put("ansiConfig", ANSI);
      return exception("CAST_OVERFLOW", parameters, List.of());
    }
    String name = only == null ? "" : only.name;
    String instead = List.of("add", "subtract", "multiply").contains(name) ? "try_" + name : "";
    String message =
        switch (type) {
          case "INT" -> "integer overflow";
          case "BIGINT" -> "long overflow";
          default -> (value + " overflow " + type.toLowerCase(Locale.ROOT)).strip();
        };
    return QueryExecutionErrors.arithmeticOverflowError(message, instead, context(matches));
  }

  /** What stands behind a literal of a type. */
  private static String suffix(String type) {
    return type.startsWith("DECIMAL") ? "BD" : SUFFIXES.getOrDefault(type, "");
  }

  /** The places that may have failed, each place of the query once. */
  private List<Place> places(List<Kind> kinds, String type) {
    List<Place> matches = new ArrayList<>();
    for (Place place : places) {
      boolean isOne = kinds.contains(place.kind) && place.type.sql().startsWith(type);
      if (isOne && matches.stream().noneMatch(match -> match.context.equals(place.context))) {
        matches.add(place);
      }
    }
    return matches;
  }

  /** The place in the query where no other can be meant, else null. */
  private static QueryContext context(List<Place> places) {
    return places.size() == 1 ? places.get(0).context : null;
  }

  private static RuntimeException exception(
      String condition, Map<String, String> parameters, List<Place> places) {
    QueryContext context = context(places);
    return new SparkArithmeticException(
        condition,
        scala.collection.immutable.Map.from(CollectionConverters.asScala(parameters)),
        context == null ? new QueryContext[0] : new QueryContext[] {context},
        context == null ? "" : context.summary());
  }
}
