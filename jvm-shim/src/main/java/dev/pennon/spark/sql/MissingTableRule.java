package dev.pennon.spark.sql;

import dev.pennon.spark.PennonCatalog;
import java.util.Arrays;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Says about a missing table what the catalog knows: which names are near.
 *
 * <p>Spark drops the catalog's message when a table is not there and reports its own. What is still
 * unresolved after resolution is asked for once more, and the catalog's exception passes.
 */
public final class MissingTableRule extends Rule<LogicalPlan> {
  private final CatalogManager catalogs;

  public MissingTableRule(SparkSession session) {
    this.catalogs =
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager();
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    for (LogicalPlan leaf : CollectionConverters.asJava(plan.collectLeaves())) {
      if (leaf instanceof UnresolvedRelation relation) {
        loadAgain(relation.multipartIdentifier());
      } else if (leaf instanceof UnresolvedTable table) {
        loadAgain(table.multipartIdentifier());
      } else if (leaf instanceof UnresolvedTableOrView table) {
        loadAgain(table.multipartIdentifier());
      }
    }
    return plan;
  }

  private void loadAgain(Seq<String> name) {
    String[] parts = CollectionConverters.asJava(name).toArray(new String[0]);
    if (parts.length > 1 && catalogs.isCatalogRegistered(parts[0])) {
      if (catalogs.catalog(parts[0]) instanceof PennonCatalog catalog) {
        catalog.loadTable(identifier(Arrays.copyOfRange(parts, 1, parts.length)));
      }
    } else if (catalogs.currentCatalog() instanceof PennonCatalog catalog) {
      catalog.loadTable(
          parts.length == 1
              ? Identifier.of(catalogs.currentNamespace(), parts[0])
              : identifier(parts));
    }
  }

  private static Identifier identifier(String[] parts) {
    int last = parts.length - 1;
    return Identifier.of(Arrays.copyOf(parts, last), parts[last]);
  }
}
