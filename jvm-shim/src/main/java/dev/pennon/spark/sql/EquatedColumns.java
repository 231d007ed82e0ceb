package dev.pennon.spark.sql;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.worker.Messages;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.types.IntegralType;

/** The columns of its two sides that a join's condition compares by = or <=>. */
final class EquatedColumns {
  private EquatedColumns() {}

  /** Pairs of expression ids, the left side's first. */
  static ArrayNode of(Join join) {
    ArrayNode pairs = Messages.array();
    if (join.condition().isDefined()) {
      equate(join.condition().get(), join, pairs);
    }
    return pairs;
  }

  /** Whether a column is compared with anything, were it an expression of the other side. */
  static boolean comparesAny(Join join) {
    return join.condition().isDefined() && comparesColumn(join.condition().get());
  }

  private static void equate(Expression condition, Join join, ArrayNode pairs) {
    if (condition instanceof And and) {
      equate(and.left(), join, pairs);
      equate(and.right(), join, pairs);
    } else if (condition instanceof EqualTo || condition instanceof EqualNullSafe) {
      Attribute one = column(((BinaryComparison) condition).left());
      Attribute other = column(((BinaryComparison) condition).right());
      if (one == null || other == null) {
        return;
      }
      boolean inOrder = join.left().outputSet().contains(one);
      Attribute left = inOrder ? one : other;
      Attribute right = inOrder ? other : one;
      if (join.left().outputSet().contains(left) && join.right().outputSet().contains(right)) {
        pairs.add(Messages.array().add(left.exprId().id()).add(right.exprId().id()));
      }
    }
  }

  private static boolean comparesColumn(Expression condition) {
    if (condition instanceof And and) {
      return comparesColumn(and.left()) || comparesColumn(and.right());
    }
    return (condition instanceof EqualTo || condition instanceof EqualNullSafe)
        && (column(((BinaryComparison) condition).left()) != null
            || column(((BinaryComparison) condition).right()) != null);
  }

  /** The column that is compared, also through the cast of an integer to a wider one. */
  private static Attribute column(Expression compared) {
    if (compared instanceof Attribute attribute) {
      return attribute;
    }
    boolean isWidened =
        compared instanceof Cast cast
            && cast.child() instanceof Attribute
            && cast.dataType() instanceof IntegralType wide
            && cast.child().dataType() instanceof IntegralType narrow
            && wide.defaultSize() > narrow.defaultSize();
    return isWidened ? (Attribute) ((Cast) compared).child() : null;
  }
}
