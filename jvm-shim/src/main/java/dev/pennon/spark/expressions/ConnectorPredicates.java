package dev.pennon.spark.expressions;

import static dev.pennon.spark.compat.Trees.nodes;

import dev.pennon.spark.compat.Columns;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.DatePart$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.expressions.V2ExpressionUtils;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Extract;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * The texts of predicates that Spark hands to connectors in a form of their own, where it has no
 * other for them: they become expressions of its plans again, and {@link ExpressionText} writes
 * these.
 */
public final class ConnectorPredicates {
  private static final Set<String> FIELDS =
      Set.of("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE");

  private final StructType schema;
  private final Option<String> timeZone = Option.apply(SQLConf.get().sessionLocalTimeZone());

  private ConnectorPredicates(StructType schema) {
    this.schema = schema;
  }

  /**
   * The texts of predicates on columns of a table: none for one of which a part has none, or depends
   * on a time zone of the session other than UTC.
   */
  public static List<String> texts(
      StructType schema, org.apache.spark.sql.connector.expressions.Expression... predicates) {
    ConnectorPredicates ofTable = new ConnectorPredicates(schema);
    return Stream.of(predicates).map(ofTable::text).filter(Objects::nonNull).toList();
  }

  private String text(org.apache.spark.sql.connector.expressions.Expression predicate) {
    try {
      Expression expression = converted(predicate);
      return dependsOnZone(expression)
          ? null
          : ExpressionText.ofTable(expression, Set.of(schema.fieldNames()));
    } catch (TypedLiteral.NotWritable | StackOverflowError reason) {
      return null;
    }
  }

  /** Whether a session's time zone is UTC, by whatever name. */
  public static boolean isUtc(String zone) {
    return ZoneId.of(zone, ZoneId.SHORT_IDS).normalized().equals(ZoneOffset.UTC);
  }

  private boolean dependsOnZone(Expression expression) {
    return !isUtc(timeZone.get())
        && nodes(expression).stream()
            .anyMatch(
                node ->
                    node instanceof org.apache.spark.sql.catalyst.expressions.Cast cast
                        ? Cast$.MODULE$.needsTimeZone(cast.child().dataType(), cast.dataType())
                        : node instanceof TimeZoneAwareExpression);
  }

  private Expression converted(org.apache.spark.sql.connector.expressions.Expression part)
      throws TypedLiteral.NotWritable {
    if (part instanceof NamedReference reference) {
      return column(reference);
    }
    if (part instanceof org.apache.spark.sql.connector.expressions.Literal<?> literal) {
      return new Literal(literal.value(), literal.dataType());
    }
    if (part instanceof Cast cast) {
      return new org.apache.spark.sql.catalyst.expressions.Cast(
          converted(cast.expression()), cast.dataType(), timeZone);
    }
    if (part instanceof Extract extract && FIELDS.contains(extract.field())) {
      Expression field =
          DatePart$.MODULE$.parseExtractField(extract.field(), converted(extract.source()));
      return field instanceof TimeZoneAwareExpression zoned
          ? (Expression) zoned.withTimeZone(timeZone.get())
          : field;
    }
    if (part instanceof GeneralScalarExpression call) {
      return call(call);
    }
    throw new TypedLiteral.NotWritable();
  }

  /** What Spark makes of a call of numbered columns, with the operands in their places. */
  private Expression call(GeneralScalarExpression call) throws TypedLiteral.NotWritable {
    List<Expression> operands = new ArrayList<>();
    for (org.apache.spark.sql.connector.expressions.Expression child : call.children()) {
      operands.add(converted(child));
    }
    NamedReference[] places =
        IntStream.range(0, operands.size())
            .mapToObj(place -> Expressions.column("`" + place + "`"))
            .toArray(NamedReference[]::new);
    Option<Expression> outline =
        V2ExpressionUtils.toCatalyst(
            operands.isEmpty() ? call : new GeneralScalarExpression(call.name(), places));
    if (outline.isEmpty()) {
      throw new TypedLiteral.NotWritable();
    }
    return filled(outline.get(), operands);
  }

  private static Expression filled(Expression outline, List<Expression> operands) {
    return outline instanceof UnresolvedAttribute place
        ? operands.get(Integer.parseInt(place.nameParts().head()))
        : outline.mapChildren(child -> filled(child, operands));
  }

  /** A column or a field of one, in whatever case the session lets its name be written. */
  private Expression column(NamedReference reference) throws TypedLiteral.NotWritable {
    StructType struct = schema;
    Expression column = null;
    for (String name : reference.fieldNames()) {
      StructField field = field(struct, name);
      column =
          column == null ? DataTypeUtils.toAttribute(field) : Columns.field(column, field.name());
      struct = field.dataType() instanceof StructType inner ? inner : new StructType();
    }
    return column;
  }

  private static StructField field(StructType type, String name) throws TypedLiteral.NotWritable {
    return Stream.of(type.fields())
        .filter(field -> (boolean) SQLConf.get().resolver().apply(field.name(), name))
        .findFirst()
        .orElseThrow(TypedLiteral.NotWritable::new);
  }
}
