package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.compat.SessionCatalogs;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Says that nothing is at a path which is queried, {@code FROM lance.`/data/orders`}, or directly
 * below the root, {@code FROM lance.orders}.
 *
 * <p>Where a catalog is called as a data source is, Spark takes the name of a table that is not
 * there for the path of a file, and says that it cannot query files of that source. It does so among the
 * first rules of resolution; this one stands before them.
 */
public final class MissingPathRule extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    items(plan.collectLeaves()).forEach(this::check);
    return plan;
  }

  private void check(LogicalPlan leaf) {
    if (leaf instanceof UnresolvedRelation relation
        && relation.multipartIdentifier().size() == 2
        && SessionCatalogs.of(SparkSession.active()).has(relation.multipartIdentifier().head())) {
      MissingTableRule.load(SparkSession.active(), relation.multipartIdentifier());
    }
  }
}
