package dev.pennon.spark.sql;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.worker.Messages;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * The columns of its two sides that a join's condition compares by = or <=>.
 *
 * @param pairs pairs of numbers, the left side's first
 * @param dates those pairs of which one is a DATE and the other a timestamp
 * @param hasCasts whether one of them is compared under a cast
 */
record EquatedColumns(ArrayNode pairs, ArrayNode dates, boolean hasCasts) {
  static EquatedColumns of(Join join, ColumnIds ids) {
    ArrayNode pairs = Messages.array();
    ArrayNode dates = Messages.array();
    boolean hasCasts =
        join.condition().isDefined() && equate(join.condition().get(), join, ids, pairs, dates);
    return new EquatedColumns(pairs, dates, hasCasts);
  }

  /** Whether a column is compared with anything, were it an expression of the other side. */
  static boolean comparesAny(Join join, ColumnIds ids) {
    return join.condition().isDefined() && comparesColumn(join.condition().get(), ids);
  }

  /** Adds what a condition equates; whether one of the columns is cast. */
  private static boolean equate(
      Expression condition, Join join, ColumnIds ids, ArrayNode pairs, ArrayNode dates) {
    if (condition instanceof And and) {
      return equate(and.left(), join, ids, pairs, dates)
          | equate(and.right(), join, ids, pairs, dates);
    }
    if (!(condition instanceof EqualTo || condition instanceof EqualNullSafe)) {
      return false;
    }
    BinaryComparison equality = (BinaryComparison) condition;
    Expression one = uncast(equality.left());
    Expression other = uncast(equality.right());
    boolean inOrder = one.references().subsetOf(join.left().outputSet());
    Expression left = inOrder ? one : other;
    Expression right = inOrder ? other : one;
    Long leftId = ids.of(left);
    Long rightId = ids.of(right);
    if (leftId == null
        || rightId == null
        || !left.references().subsetOf(join.left().outputSet())
        || !right.references().subsetOf(join.right().outputSet())) {
      return false;
    }
    pairs.add(Messages.array().add(leftId).add(rightId));
    if (left.dataType() instanceof DateType != right.dataType() instanceof DateType) {
      dates.add(Messages.array().add(leftId).add(rightId));
    }
    return one != equality.left() || other != equality.right();
  }

  private static boolean comparesColumn(Expression condition, ColumnIds ids) {
    if (condition instanceof And and) {
      return comparesColumn(and.left(), ids) || comparesColumn(and.right(), ids);
    }
    return (condition instanceof EqualTo || condition instanceof EqualNullSafe)
        && (ids.of(uncast(((BinaryComparison) condition).left())) != null
            || ids.of(uncast(((BinaryComparison) condition).right())) != null);
  }

  /** What is compared, also through a cast that keeps the value. */
  private static Expression uncast(Expression compared) {
    return compared instanceof Cast cast
            && (isWidening(cast.child().dataType(), cast.dataType()) || keepsTheMomentInUtc(cast))
        ? cast.child()
        : compared;
  }

  /** Dates and timestamps without a zone are moments in UTC for partitions, whatever the session. */
  private static boolean keepsTheMomentInUtc(Cast cast) {
    DataType from = cast.child().dataType();
    if (cast.dataType() instanceof TimestampNTZType) {
      return from instanceof DateType;
    }
    return cast.dataType() instanceof TimestampType
        && (from instanceof DateType || from instanceof TimestampNTZType)
        && ZoneId.of(cast.timeZoneId().get(), ZoneId.SHORT_IDS)
            .normalized()
            .equals(ZoneOffset.UTC);
  }

  private static boolean isWidening(DataType from, DataType to) {
    if (from instanceof DecimalType narrow && to instanceof DecimalType wide) {
      return narrow.scale() == wide.scale() && narrow.precision() < wide.precision();
    }
    return from instanceof IntegralType
        && to instanceof IntegralType
        && from.defaultSize() < to.defaultSize();
  }
}
