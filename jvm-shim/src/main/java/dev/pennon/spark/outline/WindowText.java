package dev.pennon.spark.outline;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.expressions.PlanTexts;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Window;

/**
 * The functions of a window as the worker is told them: each with a column of its own, and what the
 * window makes of these columns.
 */
record WindowText(PlanTexts texts, ArrayNode functions) {
  /** Adds the fields {@code order}, {@code functions} and {@code outputs}. */
  static void describe(Window window, PlanTexts texts, ObjectNode message) {
    texts.addOrder(items(window.orderSpec()), UnaryOperator.identity(), message.putArray("order"));
    WindowText text = new WindowText(texts, message.putArray("functions"));
    List<NamedExpression> outputs = new ArrayList<>();
    items(window.windowExpressions()).forEach(
        output -> outputs.add((NamedExpression) text.overColumns((Expression) output)));
    message.set("outputs", texts.ofValues(outputs));
  }

  private Expression overColumns(Expression expression) {
    if (expression instanceof WindowExpression call) {
      return column(call);
    }
    return expression.mapChildren(this::overColumns);
  }

  /** Tells a function, which the worker may know, and names its column. */
  private AttributeReference column(WindowExpression call) {
    Expression function = call.windowFunction();
    boolean isPlain = true;
    if (function instanceof AggregateExpression aggregate) {
      isPlain = !aggregate.isDistinct() && aggregate.filter().isEmpty();
      function = aggregate.aggregateFunction();
    }
    AttributeReference column = Columns.column("w", call.dataType(), true);
    ObjectNode message = functions.addObject().put("attribute", texts.number(column.exprId()));
    boolean isKnown = isPlain && ExpressionText.isOfSession(function);
    message.put("name", isKnown ? function.prettyName() : null).putNull("frame");
    message.put(
        "ignores_nulls", Boolean.TRUE.equals(ExpressionText.property(function, "ignoreNulls")));
    message.set("arguments", texts.ofEach(items(function.children())));
    if (call.windowSpec().frameSpecification() instanceof SpecifiedWindowFrame frame) {
      message.putObject("frame").put("unit", frame.frameType().sql())
          .put("lower", frame.lower().sql()).put("upper", frame.upper().sql());
    }
    message.set("type", Messages.parse(call.dataType().json()));
    return column;
  }
}
