package dev.pennon.spark.expressions;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.worker.Messages;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;

/**
 * The expressions of one plan as texts, over columns named {@code c<number>}.
 *
 * <p>Columns are numbered in the order in which they are met. Spark's ids are others whenever a query
 * is asked, and the worker would read the same texts anew.
 */
public final class PlanTexts {
  private final Map<ExprId, Long> numbers = new HashMap<>();

  public long number(ExprId id) {
    return numbers.computeIfAbsent(id, missing -> (long) numbers.size());
  }

  public String name(ExprId id) {
    return "c" + number(id);
  }

  /** The text of a value, such as a condition; null when there is none. */
  public String of(Expression value) {
    return ExpressionText.of(value, attribute -> name(attribute.exprId()));
  }

  /** The texts of a list, null for one that has none. */
  public ArrayNode ofEach(List<Expression> values) {
    ArrayNode texts = Messages.array();
    values.forEach(value -> texts.add(of(value)));
    return texts;
  }

  /** The values of a list: the number of each, its text or null, and its type. */
  public ArrayNode ofValues(List<NamedExpression> expressions) {
    ArrayNode values = Messages.array();
    for (NamedExpression named : expressions) {
      Expression value = Columns.valueOf(named);
      values.addArray().add(number(named.exprId())).add(of(value))
          .add(Messages.parse(value.dataType().json()));
    }
    return values;
  }

  /** Adds what rows are ordered by. */
  public void addOrder(List<SortOrder> keys, UnaryOperator<Expression> value, ArrayNode order) {
    for (SortOrder key : keys) {
      order.addObject().put("text", of(value.apply(key.child())))
          .put("ascending", key.direction() == Ascending$.MODULE$)
          .put("nulls_first", key.nullOrdering() == NullsFirst$.MODULE$);
    }
  }
}
