package dev.pennon.spark.outline;

import static dev.pennon.spark.compat.Trees.conjuncts;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.expressions.ConnectorPredicates;
import dev.pennon.spark.expressions.PlanTexts;
import dev.pennon.spark.worker.Messages;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Join;

/**
 * What a join's condition compares by = or <=>, as the worker is told it: columns and the casts
 * around them. Which of them put equal rows into equal partitions is for the worker to say.
 */
final class ComparedColumns {
  private ComparedColumns() {}

  /** The comparisons of a column of one side, with null for a side that is no column. */
  static ArrayNode of(Join join, PlanTexts texts) {
    ArrayNode pairs = Messages.array();
    Expression whole = join.condition().getOrElse(() -> Literal.TrueLiteral());
    for (Expression condition : conjuncts(whole)) {
      if (condition instanceof EqualTo || condition instanceof EqualNullSafe) {
        BinaryComparison equality = (BinaryComparison) condition;
        AttributeSet ofLeft = join.left().outputSet();
        boolean inOrder = equality.left().references().subsetOf(ofLeft);
        ObjectNode left = column(inOrder ? equality.left() : equality.right(), ofLeft, texts);
        ObjectNode right =
            column(inOrder ? equality.right() : equality.left(), join.right().outputSet(), texts);
        if (left != null || right != null) {
          pairs.addObject().<ObjectNode>set("left", left).set("right", right);
        }
      }
    }
    return pairs;
  }

  /** A column of one side: its text, and the types that it is cast to, its own first. */
  private static ObjectNode column(Expression compared, AttributeSet ofSide, PlanTexts texts) {
    ArrayNode types = Messages.array();
    boolean inUtc = true;
    Expression column = compared;
    while (column instanceof Cast cast) {
      types.insert(0, cast.dataType().typeName());
      inUtc &= cast.timeZoneId().isEmpty() || ConnectorPredicates.isUtc(cast.timeZoneId().get());
      column = cast.child();
    }
    if (Columns.of(column) == null || !column.references().subsetOf(ofSide)) {
      return null;
    }
    types.insert(0, column.dataType().typeName());
    ObjectNode message = Messages.object().put("column", texts.of(column));
    return message.put("utc", inUtc).set("types", types);
  }
}
