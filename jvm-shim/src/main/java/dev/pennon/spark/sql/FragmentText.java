package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.read.PredicateText;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Abs;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.KnownFloatingPointNormalized;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.util.V2ExpressionBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Expressions of a plan as SQL text for the worker, over columns named {@code c<expression id>}.
 *
 * <p>What has no certain text gets none, and Spark evaluates it. What the worker makes of a text is
 * the worker's decision.
 */
final class FragmentText {
  private static final Logger LOG = LoggerFactory.getLogger(FragmentText.class);

  private FragmentText() {}

  /** Name of an attribute's column in the texts. */
  static String columnName(long exprId) {
    return "c" + exprId;
  }

  /** The text of a condition; null when there is none. */
  static String ofCondition(Expression condition) {
    return of(condition, true);
  }

  /** The text of a value; null when there is none. */
  static String ofValue(Expression value) {
    return of(value, false);
  }

  /** The values of a list: the expression id of each, its text or null, and its type. */
  static ArrayNode ofValues(Seq<NamedExpression> expressions) {
    ArrayNode values = Messages.array();
    for (NamedExpression named : items(expressions)) {
      Expression value = named instanceof Alias alias ? alias.child() : (Expression) named;
      values
          .addArray()
          .add(named.exprId().id())
          .add(ofValue(value))
          .add(Messages.parse(value.dataType().json()));
    }
    return values;
  }

  private static String of(Expression expression, boolean isPredicate) {
    try {
      if (!expression.deterministic()) {
        return null;
      }
      StructType columns = new StructType();
      for (Attribute attribute : items(expression.references().toSeq())) {
        columns =
            columns.add(
                columnName(attribute.exprId().id()), attribute.dataType(), attribute.nullable());
      }
      Expression named = named(expression, SQLConf.get().ansiEnabled());
      Option<org.apache.spark.sql.connector.expressions.Expression> built =
          new V2ExpressionBuilder(named, isPredicate).build();
      return built.isEmpty()
          ? null
          : PredicateText.ofFragment(columns).write(built.get()).orElse(null);
    } catch (NotWritten reason) {
      return null;
    } catch (RuntimeException | AssertionError e) {
      // The builder asserts what it expects of an expression. Spark evaluates this one.
      LOG.info("No text for {}", expression, e);
      return null;
    }
  }

  private static Expression named(Expression expression, boolean isAnsi) throws NotWritten {
    if (expression instanceof Attribute attribute) {
      requirePlain(attribute);
      return new AttributeReference(
          columnName(attribute.exprId().id()),
          attribute.dataType(),
          attribute.nullable(),
          Metadata.empty(),
          attribute.exprId(),
          empty());
    }
    if (expression instanceof KnownFloatingPointNormalized known
        && known.child() instanceof NormalizeNaNAndZero normalized) {
      // The worker compares floating-point numbers as Spark does, wherever it compares them.
      return named(normalized.child(), isAnsi);
    }
    if (expression instanceof PlanExpression || (!isAnsi && failsInAnsiOnly(expression))) {
      throw new NotWritten();
    }
    requirePlain(expression);
    List<Expression> children = new ArrayList<>();
    for (Expression child : items(expression.children())) {
      children.add(named(child, isAnsi));
    }
    if (expression instanceof CaseWhen || expression instanceof If) {
      requireElse(children.get(children.size() - 1));
    }
    return expression.withNewChildren(sequence(children));
  }

  /** The builder silently leaves out an ELSE that it cannot write. */
  private static void requireElse(Expression value) throws NotWritten {
    if (new V2ExpressionBuilder(value, false).build().isEmpty()) {
      throw new NotWritten();
    }
  }

  /** Whether the text would not say if an overflow is an error or NULL. */
  private static boolean failsInAnsiOnly(Expression expression) {
    return expression instanceof BinaryArithmetic
        || expression instanceof UnaryMinus
        || expression instanceof Abs
        || (expression instanceof Cast cast
            && !Cast.canUpCast(cast.child().dataType(), cast.dataType()));
  }

  /** Collated strings compare in ways that a text does not tell. */
  private static void requirePlain(Expression expression) throws NotWritten {
    if (expression.dataType() instanceof StringType string
        && !string.equals(DataTypes.StringType)) {
      throw new NotWritten();
    }
  }

  private static final class NotWritten extends Exception {
    private static final long serialVersionUID = 1L;

    NotWritten() {
      super(null, null, false, false);
    }
  }
}
