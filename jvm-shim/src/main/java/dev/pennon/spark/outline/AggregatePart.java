package dev.pennon.spark.outline;

import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.sequence;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import scala.Option;

/** One column that the worker computes. */
record AggregatePart(
    AttributeReference column, String function, Expression argument, AggregateFunction partial) {
  static final String DISTINCT = "_distinct";

  boolean isDistinct() {
    return function.endsWith(DISTINCT);
  }

  /** Its column where Spark merges what several tasks give. */
  AttributeReference merged() {
    return isDistinct() ? column.withDataType(argument.dataType()).withNullability(true) : column;
  }

  /** What Spark makes of that column over the rows of a group: a value of the column's type. */
  Expression merging(AttributeReference merged) {
    if (partial instanceof Count && !isDistinct()) {
      Expression sum = complete(new Sum(column), false);
      return new Coalesce(sequence(List.of(sum, Literal$.MODULE$.apply(0L))));
    }
    Expression function = partial.withNewChildren(sequence(List.of(merged)));
    return cast(complete((AggregateFunction) function, isDistinct()), column.dataType());
  }

  boolean countsRows() {
    return function.equals("count") && argument instanceof Literal one && one.value() != null;
  }

  static AggregateExpression complete(AggregateFunction function, boolean isDistinct) {
    return new AggregateExpression(
        function, Complete$.MODULE$, isDistinct, Option.empty(), NamedExpression.newExprId());
  }

  /** A value as one of a type, which it may have. */
  static Expression cast(Expression value, DataType type) {
    return value.dataType().equals(type)
        ? value
        : new Cast(value, type, Option.apply(SQLConf.get().sessionLocalTimeZone()));
  }
}
