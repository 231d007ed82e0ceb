package dev.pennon.spark;

import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.failures.WorkerFailure;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Refuses {@code CREATE TABLE … USING lance} in Spark's own catalog.
 *
 * <p>That catalog would keep the name alone, which nothing could be read by, or whose ALTER TABLE
 * would change nothing.
 */
final class ForeignTableRule extends Rule<LogicalPlan> {
  private static final Set<String> FORMATS = Set.of("lance", "pennon");

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof V2CreateTablePlan making
        && making.name() instanceof ResolvedIdentifier name
        && CatalogV2Util.isSessionCatalog(name.catalog())) {
      String format = format(plan);
      if (FORMATS.contains(format) && isOurs(format)) {
        String table = name.catalog().name() + "." + QuotingUtils.quoted(name.identifier());
        throw WorkerFailure.of("TABLE_OUTSIDE_OF_CATALOG", "table", table, "format", format).raise();
      }
    }
    return plan;
  }

  /** Another connector may have registered the word. */
  private static boolean isOurs(String format) {
    return DataSource.lookupDataSourceV2(format, SQLConf.get()).exists(PennonSource.class::isInstance);
  }

  /** What stands behind USING: the four statements that make a table have no interface for it. */
  private static String format(LogicalPlan plan) {
    return ExpressionText.property(plan, "tableSpec") instanceof TableSpecBase spec
        ? spec.provider().getOrElse(() -> "").toLowerCase(Locale.ROOT)
        : "";
  }
}
