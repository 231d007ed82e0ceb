package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.worker.WorkerFailure;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.types.DatetimeType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads {@code table_changes('lance.shop.orders', 3, 9)}, Delta's function, as a query of the
 * metadata table {@code lance.shop.orders.changes}. Both ends belong to the range; a text is a time.
 *
 * <p>The call of any other table is left as it is: Delta has registered the function for its own.
 */
public final class TableChanges extends Rule<LogicalPlan> {
  private static final String NAME = "table_changes";

  private final SparkSession session;

  public TableChanges(SparkSession session) {
    this.session = session;
  }

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
    if (!name.get(name.size() - 1).equalsIgnoreCase(NAME)
        || arguments.isEmpty()
        || !(arguments.get(0) instanceof Literal stated)
        || !(stated.value() instanceof UTF8String text)) {
      return Optional.empty();
    }
    return PennonParser.fullName(session, text.toString())
        .map(table -> parsed(table, arguments.subList(1, arguments.size())));
  }

  private LogicalPlan parsed(String table, List<Expression> ends) {
    if (ends.isEmpty() || ends.size() > 2) {
      throw refused(table, "it has " + ends.size() + " ends");
    }
    String query = "SELECT * FROM " + table + ".changes WHERE " + condition(table, ">=", ends.get(0));
    if (ends.size() > 1) {
      query += " AND " + condition(table, "<=", ends.get(1));
    }
    try {
      return session.sessionState().sqlParser().parsePlan(query);
    } catch (ParseException e) {
      throw WorkerFailure.protocol("Spark does not read " + query, e).raise();
    }
  }

  private static String condition(String table, String comparison, Expression end) {
    if (end instanceof Literal literal && literal.value() != null) {
      if (literal.dataType() instanceof IntegralType) {
        return "_commit_version " + comparison + " " + literal.sql();
      }
      if (literal.dataType() instanceof StringType || literal.dataType() instanceof DatetimeType) {
        return "_commit_timestamp " + comparison + " CAST(" + literal.sql() + " AS TIMESTAMP)";
      }
    }
    throw refused(table, end.sql() + " is neither the number of a version nor a time");
  }

  private static RuntimeException refused(String table, String why) {
    return WorkerFailure.of("TABLE_CHANGES_REFUSED", "table", table, "why", why).raise();
  }
}
