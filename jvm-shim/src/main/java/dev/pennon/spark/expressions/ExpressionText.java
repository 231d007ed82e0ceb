package dev.pennon.spark.expressions;

import static dev.pennon.spark.compat.Columns.quoted;
import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;
import static dev.pennon.spark.compat.Trees.operands;

import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.functions.Transforms;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Ceil;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.DecimalDivideWithOverflowCheck;
import org.apache.spark.sql.catalyst.expressions.Divide;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Floor;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.KnownFloatingPointNormalized;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MakeDecimal;
import org.apache.spark.sql.catalyst.expressions.NonSQLExpression;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.TaggingExpression;
import org.apache.spark.sql.catalyst.expressions.TimestampFormatterHelper;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.util.CharVarcharCodegenUtils;
import org.apache.spark.sql.catalyst.util.package$;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StringType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Enumeration;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Expressions of a plan as SQL text for the worker.
 *
 * <p>Each expression is written as Spark writes it, with literals that say their type; what the
 * worker makes of a text is the worker's decision. What Spark's text does not tell completely gets
 * none, and Spark evaluates it: functions of users, and expressions that were made under another
 * setting of ANSI, or in another time zone, than the session has now.
 */
public final class ExpressionText {
  private static final Logger LOG = LoggerFactory.getLogger(ExpressionText.class);
  private static final String EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions.";
  private static final Set<String> BITWISE = Set.of("BitwiseAnd", "BitwiseOr", "BitwiseXor");
  private static final Set<String> ELEMENTS = Set.of("GetArrayItem", "ElementAt");
  private static final Pattern OPERAND = Pattern.compile("_operand(\\d+)_");

  private final boolean isAnsi;
  private final Enumeration.Value evalMode;
  private final String timeZone;
  private final ColumnNames columns;
  private final boolean hasOldFormats;

  /** How the worker calls the columns of a text. */
  interface ColumnNames {
    String of(Attribute attribute) throws TypedLiteral.NotWritable;
  }

  private ExpressionText(SQLConf conf, ColumnNames columns) {
    this.isAnsi = conf.ansiEnabled();
    this.evalMode = EvalMode$.MODULE$.fromSQLConf(conf);
    this.timeZone = conf.sessionLocalTimeZone();
    this.columns = columns;
    this.hasOldFormats = conf.legacyTimeParserPolicy().toString().equals("LEGACY");
  }

  /**
   * The text of a condition on the columns of a table, by their names; null when there is none.
   *
   * @param names the columns of the table; its metadata columns can stand in a text as well
   */
  public static String ofTable(Expression condition, Set<String> names) {
    return of(
        condition,
        attribute -> {
          if (!names.contains(attribute.name()) && !isMetadataColumn(attribute)) {
            throw new TypedLiteral.NotWritable();
          }
          return attribute.name();
        });
  }

  private static boolean isMetadataColumn(Attribute attribute) {
    return attribute.metadata().contains(package$.MODULE$.METADATA_COL_ATTR_KEY());
  }

  /** The text of a value, such as a condition; null when there is none. */
  static String of(Expression value, ColumnNames columns) {
    try {
      return value.deterministic() ? new ExpressionText(SQLConf.get(), columns).text(value) : null;
    } catch (TypedLiteral.NotWritable reason) {
      return null;
    } catch (RuntimeException | AssertionError | StackOverflowError e) {
      // Some expressions assert what their operands are, or nest too deep. Spark evaluates these.
      LOG.info("No text for an expression", e);
      return null;
    }
  }

  private String text(Expression expression) throws TypedLiteral.NotWritable {
    requirePlain(expression);
    if (expression instanceof Literal literal) {
      return TypedLiteral.write(literal.value(), literal.dataType());
    }
    if (expression instanceof Attribute attribute) {
      return quoted(columns.of(attribute));
    }
    Attribute subquery = ScalarSubqueries.column(expression);
    if (subquery != null) {
      // In parentheses: a value beside the rows is no column of them.
      return "(" + text(subquery) + ")";
    }
    if (expression instanceof GetStructField nested) {
      return text(nested.child()) + "." + quoted(nested.extractFieldName());
    }
    if (expression instanceof Invoke invoke
        && invoke.targetObject() instanceof Literal target
        && target.value() instanceof ScalarFunction<?> function) {
      return transform(function, items(invoke.arguments()));
    }
    if (expression instanceof StaticInvoke invoke
        && property(invoke, "scalarFunction") instanceof Some<?> known
        && known.value() instanceof ScalarFunction<?> function) {
      return transform(function, items(invoke.arguments()));
    }
    if (expression instanceof StaticInvoke invoke
        && invoke.staticObject() == CharVarcharCodegenUtils.class) {
      // What stands around every CHAR column; Spark's own text is that of another expression.
      return call(invoke.functionName(), items(invoke.arguments()).subList(0, 2));
    }
    if (expression instanceof ApplyFunctionExpression call) {
      return transform(call.function(), items(call.children()));
    }
    if (expression instanceof KnownFloatingPointNormalized known
        && known.child() instanceof NormalizeNaNAndZero normalized) {
      // The worker compares floating-point numbers as Spark does, wherever it compares them.
      return text(normalized.child());
    }
    if (expression instanceof MakeDecimal made && made.nullOnOverflow() != isAnsi) {
      // Spark's own text leaves the type out.
      return call("makedecimal", List.of(made.child()), made.precision(), made.scale());
    }
    if (expression instanceof DecimalDivideWithOverflowCheck divided
        && divided.nullOnOverflow() != isAnsi) {
      // How Spark ends an average; its own text holds that of the whole query.
      DecimalType kept = divided.dataType();
      return call("decimalaverage", items(divided.children()), kept.precision(), kept.scale());
    }
    if (expression instanceof Divide divided
        && DataTypes.DoubleType.equals(divided.dataType())
        && EvalMode$.MODULE$.LEGACY().equals(property(divided, "evalMode"))) {
      // An average divides so whatever the session says: NULL for a division by zero.
      return call("doubleaverage", items(divided.children()));
    }
    if (expression instanceof CreateNamedStruct made) {
      return call("named_struct", items(made.children()));
    }
    if (expression instanceof And || expression instanceof Or) {
      return chain(expression);
    }
    if (expression instanceof In in) {
      return membership(in.value(), items(in.list()));
    }
    if (expression instanceof InSet in) {
      List<Expression> members = new ArrayList<>();
      for (Object value : CollectionConverters.asJava(in.hset())) {
        members.add(new Literal(value, in.child().dataType()));
      }
      return membership(in.child(), members);
    }
    return operation(expression);
  }

  /** A partition transform that is called as a function, by its whole name. */
  private String transform(ScalarFunction<?> function, List<Expression> arguments)
      throws TypedLiteral.NotWritable {
    if (!Transforms.isTransform(function)) {
      throw new TypedLiteral.NotWritable();
    }
    List<String> texts = texts(arguments);
    texts.add(0, "'" + function.canonicalName() + "'");
    return "PARTITION_TRANSFORM(" + String.join(", ", texts) + ")";
  }

  /** A call of a function that Spark's own text does not show so. */
  private String call(String name, List<Expression> operands, int... numbers)
      throws TypedLiteral.NotWritable {
    List<String> texts = texts(operands);
    IntStream.of(numbers).mapToObj(String::valueOf).forEach(texts::add);
    return name + "(" + String.join(", ", texts) + ")";
  }

  private List<String> texts(List<Expression> expressions) throws TypedLiteral.NotWritable {
    List<String> texts = new ArrayList<>();
    for (Expression expression : expressions) {
      texts.add(text(expression));
    }
    return texts;
  }

  /** Operands of one connector beside each other, however deep Spark's tree of them is. */
  private String chain(Expression connector) throws TypedLiteral.NotWritable {
    List<Expression> operands =
        operands(
            connector,
            part -> part.getClass() == connector.getClass() ? items(part.children()) : List.of());
    String word = connector instanceof And ? " AND " : " OR ";
    return "(" + String.join(word, texts(operands)) + ")";
  }

  private String membership(Expression value, List<Expression> members)
      throws TypedLiteral.NotWritable {
    if (members.isEmpty()) {
      return "FALSE";
    }
    List<String> texts = new ArrayList<>();
    for (Expression member : members) {
      texts.add(
          member instanceof Literal literal
              ? TypedLiteral.writeMember(literal.value(), literal.dataType())
              : text(member));
    }
    return "(" + text(value) + " IN (" + String.join(", ", texts) + "))";
  }

  /** Spark's own text of an expression, with the texts of its operands in their places. */
  private String operation(Expression expression) throws TypedLiteral.NotWritable {
    if (!expression.getClass().getName().startsWith(EXPRESSIONS)
        || expression instanceof UserDefinedExpression
        || expression instanceof NonSQLExpression
        || expression instanceof PlanExpression
        || !isSettled(expression)) {
      throw new TypedLiteral.NotWritable();
    }
    List<String> operands = texts(items(expression.children()));
    List<Expression> places = new ArrayList<>();
    for (Expression child : items(expression.children())) {
      places.add(
          Columns.column("_operand" + places.size() + "_", child.dataType(), child.nullable()));
    }
    String outline = expression.withNewChildren(sequence(places)).sql();
    Matcher matcher = OPERAND.matcher(outline);
    StringBuilder text = new StringBuilder();
    while (matcher.find()) {
      String operand = operands.set(Integer.parseInt(matcher.group(1)), null);
      if (operand == null) {
        throw new TypedLiteral.NotWritable();
      }
      matcher.appendReplacement(text, Matcher.quoteReplacement(operand));
    }
    boolean isSilent = OPERAND.matcher(outline).matches();
    if (operands.stream().anyMatch(Objects::nonNull)
        || (isSilent && !(expression instanceof TaggingExpression))) {
      throw new TypedLiteral.NotWritable();
    }
    matcher.appendTail(text);
    String whole = isSilent || isEnclosed(outline) ? text.toString() : "(" + text + ")";
    return isTried(expression) && !(expression instanceof Cast) ? "tried(" + whole + ")" : whole;
  }

  /** Whether a text is one call or one pair of parentheses. */
  private static boolean isEnclosed(String text) {
    int depth = 0;
    for (int i = text.indexOf('('); i >= 0 && i < text.length(); i++) {
      depth += text.charAt(i) == '(' ? 1 : text.charAt(i) == ')' ? -1 : 0;
      if (depth == 0) {
        return i == text.length() - 1;
      }
    }
    return false;
  }

  /** Whether a function does with overflows what its name says in this session. */
  public static boolean isOfSession(Expression function) {
    ExpressionText session = new ExpressionText(SQLConf.get(), null);
    Object context = property(function, "evalContext");
    Object mode = context == null ? null : property(context, "evalMode");
    return (mode == null || mode.equals(session.evalMode)) && session.isSettled(function);
  }

  /** Whether an expression does with overflows, decimals and zoned times what the session says. */
  private boolean isSettled(Expression expression) {
    Object mode = property(expression, "evalMode");
    Object fails = property(expression, "failOnError");
    Object ansi = property(expression, "ansiEnabled");
    Object context = property(expression, "evalContext");
    Object zone = property(expression, "timeZoneId");
    Object isLossy = context == null ? null : property(context, "allowDecimalPrecisionLoss");
    // Operators of bits never overflow, and have a mode all the same.
    return BITWISE.contains(expression.getClass().getSimpleName())
        || (mode == null || mode.equals(evalMode) || isTried(expression))
        && (fails == null || fails.equals(isAnsi) || isTried(expression))
        // Before 4.3, floor and ceil of a DOUBLE beyond BIGINT are its end in every session.
        && (fails != null || !isAnsi || !(expression instanceof Floor || expression instanceof Ceil)
            || expression.children().head().dataType() != DataTypes.DoubleType)
        && (ansi == null || ansi.equals(isAnsi) || isTried(expression))
        && (isLossy == null || isLossy.equals(true))
        && !(hasOldFormats && expression instanceof TimestampFormatterHelper)
        && (!(zone instanceof Some<?> known) || timeZone.equals(known.value()));
  }

  /** Whether an expression is NULL where by the session's setting it would be an error. */
  private boolean isTried(Expression expression) {
    return ELEMENTS.contains(expression.getClass().getSimpleName())
        ? isAnsi && Boolean.FALSE.equals(property(expression, "failOnError"))
        : (expression instanceof BinaryArithmetic || expression instanceof Cast)
            && EvalMode$.MODULE$.TRY().equals(property(expression, "evalMode"));
  }

  /** What a public method without parameters gives; null when there is no such method. */
  public static Object property(Object object, String name) {
    try {
      return object.getClass().getMethod(name).invoke(object);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** Collated strings compare in ways that a text does not tell. */
  private static void requirePlain(Expression expression) throws TypedLiteral.NotWritable {
    if (expression.dataType() instanceof StringType string
        && !string.equals(DataTypes.StringType)) {
      throw new TypedLiteral.NotWritable();
    }
  }
}
