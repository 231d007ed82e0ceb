package dev.pennon.spark.read;

import static dev.pennon.spark.compat.Trees.operands;

import java.time.ZoneId;
import java.time.ZoneOffset;
import dev.pennon.spark.catalog.SparkTransforms;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Extract;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Writes Spark's V2 expressions as SQL text for the worker.
 *
 * <p>What has no certain text is not written at all, and Spark evaluates it: unknown functions,
 * collated strings, and whatever depends on a session time zone other than UTC.
 */
public final class PredicateText {
  private static final Set<String> COMPARISONS = Set.of("=", "<=>", "<>", "<", "<=", ">", ">=");
  private static final Set<String> ARITHMETIC = Set.of("+", "-", "*", "/", "%");
  private static final Set<String> FIELDS =
      Set.of("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE");

  private final StructType schema;
  private final boolean utcSession;

  PredicateText(StructType schema, boolean utcSession) {
    this.schema = schema;
    this.utcSession = utcSession;
  }

  /** The writer of predicates on columns of this schema under the session's time zone. */
  public static PredicateText ofSession(StructType schema) {
    return new PredicateText(schema, isUtcSession());
  }

  private static boolean isUtcSession() {
    ZoneId zone = ZoneId.of(SQLConf.get().sessionLocalTimeZone(), ZoneId.SHORT_IDS);
    return zone.normalized().equals(ZoneOffset.UTC);
  }

  /** The text of an expression, or nothing when a part of it cannot be written. */
  public Optional<String> write(Expression expression) {
    try {
      return Optional.of(text(expression));
    } catch (TypedLiteral.NotWritable | StackOverflowError reason) {
      return Optional.empty();
    }
  }

  private String text(Expression expression) throws TypedLiteral.NotWritable {
    if (expression instanceof Literal<?> literal) {
      return TypedLiteral.write(literal.value(), literal.dataType());
    }
    if (expression instanceof NamedReference reference) {
      return column(reference);
    }
    if (expression instanceof Cast cast) {
      return cast(cast);
    }
    if (expression instanceof Extract extract) {
      return extract(extract);
    }
    if (expression instanceof GeneralScalarExpression call) {
      return call.name().equals("AND") || call.name().equals("OR")
          ? chain(call)
          : call(call.name(), call.children());
    }
    throw new TypedLiteral.NotWritable();
  }

  private String call(String name, Expression[] arguments) throws TypedLiteral.NotWritable {
    List<String> texts = new ArrayList<>();
    boolean isList = name.equals("IN");
    for (Expression argument : arguments) {
      texts.add(
          isList && argument instanceof Literal<?> literal
              ? TypedLiteral.writeMember(literal.value(), literal.dataType())
              : text(argument));
    }
    boolean infix = COMPARISONS.contains(name) || ARITHMETIC.contains(name);
    if (infix && texts.size() == 2) {
      return "(" + texts.get(0) + " " + name + " " + texts.get(1) + ")";
    }
    if (isList && !texts.isEmpty()) {
      return texts.size() == 1
          ? "FALSE"
          : "(" + texts.get(0) + " IN (" + String.join(", ", texts.subList(1, texts.size())) + "))";
    }
    return switch (name + "/" + texts.size()) {
      case "-/1" -> "(- " + texts.get(0) + ")";
      case "NOT/1" -> "(NOT " + texts.get(0) + ")";
      case "IS_NULL/1" -> "(" + texts.get(0) + " IS NULL)";
      case "IS_NOT_NULL/1" -> "(" + texts.get(0) + " IS NOT NULL)";
      case "STARTS_WITH/2" -> "STARTSWITH(" + String.join(", ", texts) + ")";
      case "ENDS_WITH/2" -> "ENDSWITH(" + String.join(", ", texts) + ")";
      case "CONTAINS/2" -> "CONTAINS(" + String.join(", ", texts) + ")";
      case "BOOLEAN_EXPRESSION/1" -> texts.get(0);
      case "ALWAYS_TRUE/0" -> "TRUE";
      case "ALWAYS_FALSE/0" -> "FALSE";
      default -> throw new TypedLiteral.NotWritable();
    };
  }

  /** Operands of one connector beside each other, however deep Spark's tree of them is. */
  private String chain(GeneralScalarExpression connector) throws TypedLiteral.NotWritable {
    String name = connector.name();
    List<String> texts = new ArrayList<>();
    for (Expression operand : operands((Expression) connector, part -> joined(name, part))) {
      texts.add(text(operand));
    }
    return "(" + String.join(" " + name + " ", texts) + ")";
  }

  private static List<Expression> joined(String connector, Expression part) {
    return part instanceof GeneralScalarExpression call && call.name().equals(connector)
        ? Arrays.asList(call.children())
        : List.of();
  }

  private String column(NamedReference reference) throws TypedLiteral.NotWritable {
    if (typeOf(reference) instanceof StringType string && !string.equals(DataTypes.StringType)) {
      throw new TypedLiteral.NotWritable();
    }
    return SparkTransforms.quoted(reference.fieldNames());
  }

  private String cast(Cast cast) throws TypedLiteral.NotWritable {
    DataType from = cast.expressionDataType();
    if (!utcSession && (usesZone(from, cast.dataType()) || usesZone(cast.dataType(), from))) {
      throw new TypedLiteral.NotWritable();
    }
    return "CAST(" + text(cast.expression()) + " AS " + cast.dataType().sql() + ")";
  }

  private String extract(Extract extract) throws TypedLiteral.NotWritable {
    boolean zoned = typeOf(extract.source()) instanceof TimestampType;
    if (!FIELDS.contains(extract.field()) || (zoned && !utcSession)) {
      throw new TypedLiteral.NotWritable();
    }
    return "EXTRACT(" + extract.field() + " FROM " + text(extract.source()) + ")";
  }

  private static boolean usesZone(DataType instant, DataType other) {
    return instant instanceof TimestampType
        && (other instanceof DateType
            || other instanceof TimestampNTZType
            || other instanceof StringType);
  }

  private DataType typeOf(Expression expression) throws TypedLiteral.NotWritable {
    if (expression instanceof Cast cast) {
      return cast.dataType();
    }
    if (expression instanceof Literal<?> literal) {
      return literal.dataType();
    }
    if (!(expression instanceof NamedReference reference)) {
      throw new TypedLiteral.NotWritable();
    }
    DataType type = schema;
    for (String part : reference.fieldNames()) {
      type = fieldType(type, part);
    }
    return type;
  }

  private static DataType fieldType(DataType parent, String name) throws TypedLiteral.NotWritable {
    if (parent instanceof StructType struct) {
      for (StructField field : struct.fields()) {
        if (field.name().equals(name)) {
          return field.dataType();
        }
      }
    }
    throw new TypedLiteral.NotWritable();
  }
}
