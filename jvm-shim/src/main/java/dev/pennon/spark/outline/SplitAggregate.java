package dev.pennon.spark.outline;

import static dev.pennon.spark.compat.Columns.named;
import static dev.pennon.spark.compat.Sequences.appended;
import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;
import static dev.pennon.spark.outline.AggregatePart.DISTINCT;
import static dev.pennon.spark.outline.AggregatePart.cast;
import static dev.pennon.spark.outline.AggregatePart.complete;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.expressions.PlanTexts;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.BitAndAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.BitOrAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.BitXorAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Corr;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.CovPopulation;
import org.apache.spark.sql.catalyst.expressions.aggregate.CovSample;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.MaxBy;
import org.apache.spark.sql.catalyst.expressions.aggregate.MaxMinBy;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Percentile;
import org.apache.spark.sql.catalyst.expressions.aggregate.StddevPop;
import org.apache.spark.sql.catalyst.expressions.aggregate.StddevSamp;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.expressions.aggregate.VariancePop;
import org.apache.spark.sql.catalyst.expressions.aggregate.VarianceSamp;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.NumericType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Enumeration;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * An aggregate as two: sums, counts, minima and maxima that the worker computes per task, and what
 * Spark makes of them.
 */
public final class SplitAggregate {
  private static final Logger LOG = LoggerFactory.getLogger(SplitAggregate.class);

  /** What the worker knows by the names of their classes. */
  private static final Set<Class<?>> NAMED = Set.of(
      Min.class, Max.class, BitAndAgg.class, BitOrAgg.class, BitXorAgg.class,
      VarianceSamp.class, VariancePop.class, StddevSamp.class, StddevPop.class,
      Corr.class, CovSample.class, CovPopulation.class, Percentile.class);

  private final Aggregate aggregate;
  private final PlanTexts texts;
  private final Enumeration.Value evalMode;
  private final List<AttributeReference> groups = new ArrayList<>();
  /** By the function and what it is of. */
  private final Map<List<Object>, AggregatePart> parts = new LinkedHashMap<>();
  private final List<NamedExpression> finished = new ArrayList<>();

  private SplitAggregate(Aggregate aggregate, PlanTexts texts) {
    this.aggregate = aggregate;
    this.texts = texts;
    this.evalMode = EvalMode$.MODULE$.fromSQLConf(SQLConf.get());
    items(aggregate.groupingExpressions())
        .forEach(group -> groups.add(column(group.dataType(), group.nullable())));
    items(aggregate.aggregateExpressions()).forEach(output -> finished.add(finished(output)));
  }

  /**
   * The aggregate in two; null when Spark has to compute a part of it itself.
   *
   * @param message gets the two, or the name of that part
   */
  static SplitAggregate of(Aggregate aggregate, PlanTexts texts, ObjectNode message) {
    message.putNull("keys").putNull("functions").putNull("outputs").putNull("unknown");
    try {
      SplitAggregate split = new SplitAggregate(aggregate, texts);
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
    message.set("keys", texts.ofValues(keys()));
    ArrayNode functions = message.putArray("functions");
    for (AggregatePart part : parts.values()) {
      ObjectNode entry = functions.addObject().put("name", part.function());
      entry.put("attribute", texts.number(part.column().exprId()));
      entry.put("argument", part.countsRows() ? "1" : texts.of(part.argument()));
      entry.set("argument_type", Messages.parse(part.argument().dataType().json()));
      entry.set("type", Messages.parse(part.column().dataType().json()));
      List<Expression> others = items(part.partial().children()).stream().skip(1).toList();
      entry.set("others", texts.ofEach(others));
    }
    message.set("outputs", texts.ofValues(finished));
  }

  /**
   * What the worker computes: groups, then functions.
   *
   * @param isMerged whether a group may have several rows: one for each different value of what is
   *     counted by different values, then, which has that value
   */
  public List<AttributeReference> columns(boolean isMerged) {
    List<AttributeReference> columns = new ArrayList<>(groups);
    parts.values().forEach(part -> columns.add(isMerged ? part.merged() : part.column()));
    return columns;
  }

  /** What it groups by, under the names of the columns. */
  private List<NamedExpression> keys() {
    List<NamedExpression> keys = new ArrayList<>();
    for (int i = 0; i < groups.size(); i++) {
      AttributeReference group = groups.get(i);
      keys.add(named(aggregate.groupingExpressions().apply(i), group.name(), group.exprId()));
    }
    return keys;
  }

  /** The worker's half as Spark would write it. */
  public LogicalPlan partial(boolean isMerged) {
    List<NamedExpression> outputs = keys();
    List<Expression> keys = new ArrayList<>(items(aggregate.groupingExpressions()));
    for (AggregatePart part : parts.values()) {
      Expression value = complete(part.partial(), part.isDistinct());
      if (isMerged && part.isDistinct()) {
        value = part.argument();
        keys.add(value);
      }
      outputs.add(named(value, part.column().name(), part.column().exprId()));
    }
    return aggregate.copy(sequence(keys), sequence(outputs), aggregate.child(), aggregate.hint());
  }

  /** The aggregate's output from the columns where a group may have several rows. */
  public LogicalPlan mergedOver(LogicalPlan columns) {
    Map<Expression, AttributeReference> columnsOf = new HashMap<>();
    Map<ExprId, Expression> byColumn = new HashMap<>();
    for (AggregatePart part : parts.values()) {
      // Spark aggregates the different values of one column; of several it repeats the rows before.
      Expression key = part.isDistinct() ? part.argument().canonicalized() : part.column();
      AttributeReference column = columnsOf.computeIfAbsent(key, missing -> part.merged());
      byColumn.put(part.column().exprId(), part.merging(column));
    }
    List<NamedExpression> merged = new ArrayList<>();
    finished.forEach(output -> merged.add((NamedExpression) replaced((Expression) output, byColumn)));
    return aggregate.copy(sequence(groups), sequence(merged), columns, aggregate.hint());
  }

  private static Expression replaced(Expression expression, Map<ExprId, Expression> byColumn) {
    Expression known = expression instanceof Attribute of ? byColumn.get(of.exprId()) : null;
    return known == null ? expression.mapChildren(child -> replaced(child, byColumn)) : known;
  }

  /**
   * The aggregate's output from the columns where each group has one row.
   *
   * @param isKeyed whether the last of them is a fragment's key, which stays
   */
  public LogicalPlan finishedOver(LogicalPlan columns, boolean isKeyed) {
    Seq<NamedExpression> outputs = sequence(finished);
    return new Project(isKeyed ? appended(outputs, columns.output().last()) : outputs, columns);
  }

  /** An expression of the output, as one of the columns where each group has one row. */
  Expression overColumns(Expression expression) {
    Map<ExprId, Expression> values = new HashMap<>();
    finished.forEach(output -> values.put(output.exprId(), Columns.valueOf(output)));
    return replaced(expression, values);
  }

  private NamedExpression finished(NamedExpression output) {
    Expression value = finished((Expression) output);
    return output instanceof Alias ? (NamedExpression) value : new Alias(
        value, output.name(), output.exprId(), output.qualifier(), Option.apply(output.metadata()),
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
    String distinct = expression.isDistinct() ? DISTINCT : "";
    if (function instanceof Count) {
      return count(items(function.children()), filter, distinct);
    }
    if (function instanceof Average average && evalMode.equals(average.evalMode())) {
      return average(average, filter, distinct);
    }
    if (function instanceof First first
        && first.ignoreNulls()
        && aggregate.child() instanceof Aggregate below
        && below.child() instanceof Expand
        && filter.exists(test -> test.references().forall(of -> of.name().equals("gid")))) {
      // Spark has put what stands beside different values into one row, which it looks for.
      function = new Max(first.child());
    }
    if (function instanceof MaxMinBy by) {
      return besideExtreme(by, filter);
    }
    // Of different values the worker has to see all at once.
    List<Expression> arguments = new ArrayList<>(items(function.children()));
    arguments.set(0, filtered(arguments.get(0), filter));
    AggregateFunction called = (AggregateFunction) function.withNewChildren(sequence(arguments));
    return part(simpleName(function) + distinct, arguments.get(0), called);
  }

  private String simpleName(AggregateFunction function) {
    if (function instanceof Sum sum
        && sum.child().dataType() instanceof NumericType
        && evalMode.equals(sum.evalContext().evalMode())) {
      return "sum";
    }
    // The worker computes most of these of whole groups only; parts of them are not merged.
    if (!NAMED.contains(function.getClass())
        || Boolean.FALSE.equals(ExpressionText.property(function, "nullOnDivideByZero"))) {
      throw new Unsplittable(function.prettyName());
    }
    boolean isReversed = Boolean.TRUE.equals(ExpressionText.property(function, "reverse"));
    return function.getClass().getSimpleName() + (isReversed ? "Reversed" : "");
  }

  private AttributeReference count(
      List<Expression> given, Option<Expression> filter, String distinct) {
    List<Expression> values = distinct.isEmpty() ? given : different(given);
    Expression counted =
        values.size() == 1 ? filtered(values.get(0), filter) : together(values, values, filter);
    return part("count" + distinct, counted, new Count(sequence(List.of(counted))));
  }

  /** Spark takes values that are counted as different ones for the same in any order, and twice. */
  private static List<Expression> different(List<Expression> given) {
    Set<Expression> known = new HashSet<>();
    List<Expression> values = given.stream()
        .filter(one -> (one.nullable() || !one.foldable()) && known.add(one.canonicalized()))
        .sorted(Comparator.comparing(value -> value.canonicalized().toString()))
        .toList();
    return values.isEmpty() ? given : values;
  }

  /** The value beside an extreme: in the extreme of both together, for of equal ones any will do. */
  private Expression besideExtreme(MaxMinBy by, Option<Expression> filter) {
    Expression pair = together(
        List.of(by.orderingExpr(), by.valueExpr()), List.of(by.orderingExpr()), filter);
    AggregateFunction extreme = by instanceof MaxBy ? new Max(pair) : new Min(pair);
    return new GetStructField(
        part(by.getClass().getSimpleName(), pair, extreme), 1, Option.empty());
  }

  /** Several values as one, NULL where one of some others is. */
  private static Expression together(
      List<Expression> values, List<Expression> known, Option<Expression> filter) {
    Expression condition = filter.getOrElse(() -> Literal$.MODULE$.apply(true));
    List<Expression> fields = new ArrayList<>();
    values.forEach(value ->
        fields.addAll(List.of(Literal$.MODULE$.apply("value" + fields.size() / 2), value)));
    for (Expression value : known) {
      condition = new And(condition, new IsNotNull(value));
    }
    Expression whole = new CreateNamedStruct(sequence(fields));
    return new CaseWhen(sequence(List.of(new Tuple2<>(condition, whole))), Option.empty());
  }

  /** Spark's own division of a sum by a count, over the columns. */
  private Expression average(Average average, Option<Expression> filter, String distinct) {
    DataType given = average.child().dataType();
    // Of BIGINTs that sum may be none, where that of DOUBLEs is one.
    if (!(given instanceof NumericType) || (given instanceof LongType && !distinct.isEmpty())) {
      throw new Unsplittable(average.prettyName() + (distinct.isEmpty() ? "" : "(DISTINCT …)"));
    }
    DataType summed = average.sumDataType();
    boolean isExact = given instanceof DecimalType || !distinct.isEmpty();
    Expression added = filtered(isExact ? average.child() : cast(average.child(), summed), filter);
    Expression sum = cast(part("sum" + distinct, added, new Sum(added)), summed);
    Expression count = count(List.of(average.child()), filter, distinct);
    return replaced(
        average.evaluateExpression(),
        Map.of(average.sum().exprId(), sum, average.count().exprId(), count));
  }

  private AttributeReference part(String function, Expression argument, AggregateFunction partial) {
    AttributeReference column = column(partial.dataType().asNullable(), partial.nullable());
    return parts.computeIfAbsent(List.of(function, partial.canonicalized()), missing ->
        new AggregatePart(column, function, argument, partial)).column();
  }

  private static Expression filtered(Expression argument, Option<Expression> filter) {
    return filter.isEmpty()
        ? argument : new If(filter.get(), argument, new Literal(null, argument.dataType()));
  }

  private AttributeReference column(DataType type, boolean isNullable) {
    AttributeReference column = Columns.column("", type, isNullable);
    return column.withName(texts.name(column.exprId()));
  }

  private static final class Unsplittable extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Unsplittable(String function) {
      super(function, null, false, false);
    }
  }
}
