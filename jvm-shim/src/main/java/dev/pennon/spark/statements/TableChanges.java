package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.failures.WorkerFailure;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DatetimeType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads {@code table_changes('lance.shop.orders', 3, 9)}, Delta's function, as the changes from one
 * version to the other; Spark before 4.2, and a range from a version to a time, as a query of the
 * metadata table {@code lance.shop.orders.changes}. Both ends belong to the range; a text is a time.
 *
 * <p>The call of any other table is left as it is: Delta has registered the function for its own.
 */
public final class TableChanges extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof UnresolvedTableValuedFunction call) {
      return query(call).orElse(plan);
    }
    return plan.mapChildren(this::apply);
  }

  private Optional<LogicalPlan> query(UnresolvedTableValuedFunction call) {
    List<String> name = items(call.name());
    List<Expression> arguments = items(call.functionArgs());
    if (!name.get(name.size() - 1).equalsIgnoreCase("table_changes")
        || arguments.isEmpty()
        || !(arguments.get(0) instanceof Literal stated)
        || !(stated.value() instanceof UTF8String text)) {
      return Optional.empty();
    }
    return PennonParser.fullName(SparkSession.active(), text.toString())
        .map(table -> parsed(table, arguments.subList(1, arguments.size())));
  }

  private LogicalPlan parsed(String table, List<Expression> ends) {
    if (ends.isEmpty() || ends.size() > 2) {
      throw refused(table, "it has " + ends.size() + " ends");
    }
    List<String> range = ends.stream().map(end -> end(table, end)).toList();
    String rows = "SELECT * FROM " + table;
    String changes = rows + " CHANGES FROM " + String.join(" TO ", range);
    String first = rows + ".changes WHERE _commit_" + range.get(0).replaceFirst(" ", " >= ");
    String last = range.size() < 2 ? "" : " AND _commit_" + range.get(1).replaceFirst(" ", " <= ");
    return PennonParser.plan(SparkSession.active(), changes, first + last);
  }

  private static String end(String table, Expression end) {
    if (end instanceof Literal literal && literal.value() != null) {
      DataType type = literal.dataType();
      if (type instanceof IntegralType && ((Number) literal.value()).longValue() >= 0) {
        return "version " + literal.value();
      }
      if (type instanceof StringType || type instanceof DatetimeType) {
        return "timestamp " + literal.sql();
      }
    }
    throw refused(table, end.sql() + " is neither the number of a version nor a time");
  }

  private static RuntimeException refused(String table, String why) {
    return WorkerFailure.of("TABLE_CHANGES_REFUSED", "table", table, "why", why).raise();
  }
}
