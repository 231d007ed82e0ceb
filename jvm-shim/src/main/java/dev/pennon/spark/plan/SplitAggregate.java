package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.StddevPop;
import org.apache.spark.sql.catalyst.expressions.aggregate.StddevSamp;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.expressions.aggregate.VariancePop;
import org.apache.spark.sql.catalyst.expressions.aggregate.VarianceSamp;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.NumericType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Enumeration;
import scala.Option;

/**
 * An aggregate as two: sums, counts, minima and maxima that the worker computes per task, and what
 * Spark makes of them.
 */
final class SplitAggregate {
  private static final Logger LOG = LoggerFactory.getLogger(SplitAggregate.class);

  private static final String DISTINCT = "_distinct";
  private static final Map<Class<?>, String> MOMENTS =
      Map.of(
          VarianceSamp.class, "var_samp",
          VariancePop.class, "var_pop",
          StddevSamp.class, "stddev_samp",
          StddevPop.class, "stddev_pop");

  /** One column that the worker computes. */
  private record Part(
      AttributeReference column, String function, Expression argument, AggregateFunction partial) {
    boolean isDistinct() {
      return function.endsWith(DISTINCT);
    }

    /** Its column where Spark merges what several tasks give. */
    AttributeReference merged() {
      return isDistinct()
          ? column.withDataType(argument.dataType()).withNullability(true)
          : column;
    }

    /** What Spark makes of that column over the rows of a group: a value of the column's type. */
    Expression merging() {
      if (partial instanceof Count && !isDistinct()) {
        Expression sum = complete(new Sum(column), false);
        return new Coalesce(sequence(List.of(sum, Literal$.MODULE$.apply(0L))));
      }
      return cast(complete(with(partial, merged()), isDistinct()), column.dataType());
    }

    boolean countsRows() {
      return function.equals("count") && argument instanceof Literal;
    }
  }

  /** By what equal parts are found. */
  private record PartKey(String function, Expression argument) {}

  private final Aggregate aggregate;
  private final Enumeration.Value evalMode;
  private final List<AttributeReference> groups = new ArrayList<>();
  private final Map<PartKey, Part> parts = new LinkedHashMap<>();
  private final List<NamedExpression> finished = new ArrayList<>();

  private SplitAggregate(Aggregate aggregate) {
    this.aggregate = aggregate;
    this.evalMode = EvalMode$.MODULE$.fromSQLConf(SQLConf.get());
    for (Expression group : items(aggregate.groupingExpressions())) {
      groups.add(column(group.dataType(), group.nullable()));
    }
    for (NamedExpression output : items(aggregate.aggregateExpressions())) {
      finished.add(finished(output));
    }
  }

  /**
   * The aggregate in two; null when Spark has to compute a part of it itself.
   *
   * @param message gets the two, or the name of that part
   */
  static SplitAggregate of(Aggregate aggregate, ObjectNode message) {
    message.putNull("grouping").putNull("functions").putNull("outputs").putNull("unknown");
    try {
      SplitAggregate split = new SplitAggregate(aggregate);
      split.describe(message);
      return split;
    } catch (Unsplittable reason) {
      message.put("unknown", reason.getMessage());
    } catch (RuntimeException e) {
      LOG.info("Spark executes an aggregate that cannot be split: {}", aggregate, e);
      message.put("unknown", aggregate.nodeName());
    }
    return null;
  }

  private void describe(ObjectNode message) {
    ArrayNode grouping = message.putArray("grouping");
    for (int i = 0; i < groups.size(); i++) {
      Expression group = aggregate.groupingExpressions().apply(i);
      ArrayNode entry = grouping.addArray().add(ExpressionText.ofValue(group));
      entry.add(type(group.dataType())).add(groups.get(i).exprId().id());
    }
    ArrayNode functions = message.putArray("functions");
    for (Part part : parts.values()) {
      ArrayNode entry = functions.addArray().add(part.column().exprId().id()).add(part.function());
      entry.add(part.countsRows() ? "1" : ExpressionText.ofValue(part.argument()));
      entry.add(type(part.argument().dataType())).add(type(part.column().dataType()));
    }
    message.set("outputs", ExpressionText.ofValues(sequence(finished)));
  }

  private static JsonNode type(DataType type) {
    return Messages.parse(type.json());
  }

  /**
   * What the worker computes: groups, then functions.
   *
   * @param isMerged whether a group may have several rows: one for each different value of what is
   *     counted by different values, then, which has that value
   */
  List<AttributeReference> columns(boolean isMerged) {
    List<AttributeReference> columns = new ArrayList<>(groups);
    parts.values().forEach(part -> columns.add(isMerged ? part.merged() : part.column()));
    return columns;
  }

  /** The worker's half as Spark would write it. */
  LogicalPlan partial(boolean isMerged) {
    List<NamedExpression> outputs = new ArrayList<>();
    List<Expression> keys = new ArrayList<>(items(aggregate.groupingExpressions()));
    for (int i = 0; i < groups.size(); i++) {
      outputs.add(named(aggregate.groupingExpressions().apply(i), groups.get(i)));
    }
    for (Part part : parts.values()) {
      if (isMerged && part.isDistinct()) {
        keys.add(part.argument());
        outputs.add(named(part.argument(), part.merged()));
      } else {
        outputs.add(named(complete(part.partial(), part.isDistinct()), part.column()));
      }
    }
    return aggregate.copy(
        sequence(keys), sequence(outputs), aggregate.child(), aggregate.hint());
  }

  /** The aggregate's output from the columns where a group may have several rows. */
  LogicalPlan mergedOver(LogicalPlan columns) {
    Map<ExprId, Part> byColumn = new HashMap<>();
    parts.values().forEach(part -> byColumn.put(part.column().exprId(), part));
    List<NamedExpression> merged = new ArrayList<>();
    finished.forEach(output -> merged.add((NamedExpression) merged((Expression) output, byColumn)));
    return aggregate.copy(sequence(groups), sequence(merged), columns, aggregate.hint());
  }

  private static Expression merged(Expression expression, Map<ExprId, Part> byColumn) {
    Part part = expression instanceof Attribute column ? byColumn.get(column.exprId()) : null;
    return part == null
        ? expression.mapChildren(child -> merged(child, byColumn))
        : part.merging();
  }

  /** The aggregate's output from the columns where each group has one row. */
  LogicalPlan finishedOver(LogicalPlan columns) {
    return new Project(sequence(finished), columns);
  }

  /** An expression of the output, as one of the columns where each group has one row. */
  Expression overColumns(Expression expression) {
    if (expression instanceof Attribute attribute) {
      for (NamedExpression output : finished) {
        if (output.exprId().equals(attribute.exprId())) {
          return ((Alias) output).child();
        }
      }
    }
    return expression.mapChildren(this::overColumns);
  }

  private NamedExpression finished(NamedExpression output) {
    Expression value = finished((Expression) output);
    if (output instanceof Alias) {
      return (NamedExpression) value;
    }
    return new Alias(
        value,
        output.name(),
        output.exprId(),
        output.qualifier(),
        Option.apply(output.metadata()),
        empty());
  }

  private Expression finished(Expression expression) {
    if (expression instanceof AggregateExpression function) {
      return cast(result(function), function.dataType());
    }
    for (int i = 0; i < groups.size(); i++) {
      if (expression.semanticEquals(aggregate.groupingExpressions().apply(i))) {
        return groups.get(i);
      }
    }
    if (expression instanceof Attribute || !expression.deterministic()) {
      throw new Unsplittable(expression.prettyName());
    }
    return expression.mapChildren(this::finished);
  }

  private Expression result(AggregateExpression expression) {
    AggregateFunction function = expression.aggregateFunction();
    if (expression.mode() != Complete$.MODULE$) {
      throw new Unsplittable(function.prettyName());
    }
    Option<Expression> filter = expression.filter();
    boolean isCount = function instanceof Count && function.children().size() == 1;
    if (isCount && !expression.isDistinct()) {
      return count(filtered(function.children().head(), filter));
    }
    if (function instanceof Average average
        && !expression.isDistinct()
        && isSession(average.evalMode())) {
      return average(average, filter);
    }
    if (expression.isDistinct() && !isCount && !(function instanceof Sum)) {
      throw new Unsplittable(function.prettyName() + "(DISTINCT …)");
    }
    // Of different values the worker has to see all at once.
    String name = isCount ? "count" : simpleName(function);
    Expression argument = filtered(function.children().head(), filter);
    return part(
        expression.isDistinct() ? name + DISTINCT : name, argument, with(function, argument));
  }

  private String simpleName(AggregateFunction function) {
    if (function instanceof Sum sum
        && sum.child().dataType() instanceof NumericType
        && isSession(sum.evalContext().evalMode())) {
      return "sum";
    }
    if (function instanceof Min) {
      return "min";
    }
    if (function instanceof Max) {
      return "max";
    }
    if (Boolean.TRUE.equals(ExpressionText.property(function, "nullOnDivideByZero"))
        && MOMENTS.containsKey(function.getClass())) {
      // The worker computes these of whole groups only; parts of them are not merged.
      return MOMENTS.get(function.getClass());
    }
    throw new Unsplittable(function.prettyName());
  }

  private boolean isSession(Enumeration.Value mode) {
    return evalMode.equals(mode);
  }

  private AttributeReference count(Expression argument) {
    if (argument instanceof Literal literal && literal.value() == null) {
      throw new Unsplittable("count(NULL)");
    }
    Expression counted = argument instanceof Literal ? Literal$.MODULE$.apply(1) : argument;
    return part("count", counted, new Count(sequence(List.of(counted))));
  }

  /** Spark's own division of a sum by a count, over the columns. */
  private Expression average(Average average, Option<Expression> filter) {
    DataType given = average.child().dataType();
    if (!(given instanceof NumericType)) {
      throw new Unsplittable(average.prettyName());
    }
    DataType summed = average.sumDataType();
    Expression child = given instanceof DecimalType ? average.child() : cast(average.child(), summed);
    Expression argument = filtered(child, filter);
    Expression sum = cast(part("sum", argument, new Sum(argument)), summed);
    Expression count = count(filtered(average.child(), filter));
    return substituted(average.evaluateExpression(), average, sum, count);
  }

  private static Expression substituted(
      Expression expression, Average average, Expression sum, Expression count) {
    if (expression instanceof Attribute attribute) {
      return attribute.exprId().equals(average.sum().exprId()) ? sum : count;
    }
    return expression.mapChildren(child -> substituted(child, average, sum, count));
  }

  private AttributeReference part(
      String function, Expression argument, AggregateFunction partial) {
    return parts
        .computeIfAbsent(
            new PartKey(function, argument.canonicalized()),
            key ->
                new Part(
                    column(partial.dataType(), partial.nullable()), function, argument, partial))
        .column();
  }

  private static Expression filtered(Expression argument, Option<Expression> filter) {
    return filter.isEmpty()
        ? argument
        : new If(filter.get(), argument, new Literal(null, argument.dataType()));
  }

  private static AggregateFunction with(AggregateFunction function, Expression argument) {
    return (AggregateFunction) function.withNewChildren(sequence(List.of(argument)));
  }

  private static AggregateExpression complete(AggregateFunction function, boolean isDistinct) {
    return new AggregateExpression(
        function, Complete$.MODULE$, isDistinct, Option.empty(), NamedExpression.newExprId());
  }

  /** A value as one of a type, which it may have. */
  private static Expression cast(Expression value, DataType type) {
    return value.dataType().equals(type)
        ? value
        : new Cast(value, type, Option.apply(SQLConf.get().sessionLocalTimeZone()));
  }

  private static AttributeReference column(DataType type, boolean isNullable) {
    AttributeReference column = Columns.column("", type, isNullable);
    return column.withName(ExpressionText.columnName(column.exprId().id()));
  }

  private static Alias named(Expression value, AttributeReference column) {
    return Columns.named(value, column.name(), column.exprId());
  }

  private static final class Unsplittable extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Unsplittable(String function) {
      super(function, null, false, false);
    }
  }
}
