package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.failures.WorkerFailure;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeTables;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Says what to type instead of {@code ANALYZE TABLES IN lance.shop}, for which Spark has a plan in its
 * own catalog alone: in any other one it ends in an internal error.
 */
public final class AnalyzeTablesRule extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof AnalyzeTables statement
        && statement.namespace() instanceof ResolvedNamespace namespace
        && namespace.catalog() instanceof WorkerCatalog catalog) {
      List<String> parts = new ArrayList<>(List.of(catalog.name()));
      parts.addAll(items(namespace.namespace()));
      String name = String.join(".", parts);
      throw WorkerFailure.of(
              "ANALYZE_TABLES_NOT_SUPPORTED", "namespace", name, "catalog", catalog.name())
          .raise();
    }
    return plan;
  }
}
