package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.WorkerCatalog;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.plans.logical.DropNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetCatalogAndNamespace;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * Says about a missing table or namespace what the catalog knows: which names are near.
 *
 * <p>Spark drops the catalog's message when a table is not there and reports its own. What is still
 * unresolved after resolution is asked for once more, and the catalog's exception passes.
 */
public final class MissingTableRule extends Rule<LogicalPlan> {
  private final SparkSession session;

  public MissingTableRule(SparkSession session) {
    // The session's catalogs are not there yet: this rule is a part of what is being built.
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    items(plan.collectLeaves()).forEach(this::check);
    // The target of a write is no child of it.
    if (plan instanceof InsertIntoStatement insert) {
      check(insert.table());
    } else if (plan instanceof V2WriteCommand write) {
      check((LogicalPlan) write.table());
    } else if (plan instanceof DropTable drop && !drop.ifExists()) {
      checkTable(drop.child());
    } else if (plan instanceof DropNamespace drop && !drop.ifExists()) {
      checkNamespace(drop.namespace());
    } else if (plan instanceof SetCatalogAndNamespace use) {
      checkNamespace(use.child());
    }
    return plan;
  }

  private static void checkTable(LogicalPlan name) {
    if (name instanceof ResolvedIdentifier table
        && table.catalog() instanceof WorkerCatalog catalog
        && !catalog.tableExists(table.identifier())) {
      catalog.loadTable(table.identifier());
    }
  }

  private static void checkNamespace(LogicalPlan name) {
    if (name instanceof ResolvedNamespace namespace
        && namespace.catalog() instanceof WorkerCatalog catalog) {
      catalog.checkNamespace(items(namespace.namespace()).toArray(new String[0]));
    }
  }

  private void check(LogicalPlan node) {
    if (node instanceof UnresolvedRelation relation) {
      load(session, relation.multipartIdentifier());
    } else if (node instanceof UnresolvedTable table) {
      load(session, table.multipartIdentifier());
    } else if (node instanceof UnresolvedTableOrView table) {
      load(session, table.multipartIdentifier());
    }
  }

  /** The catalog of a name in SQL, and the table there. */
  static Option<Tuple2<CatalogPlugin, Identifier>> named(SparkSession session, Seq<String> name) {
    return session.sessionState().analyzer().CatalogAndIdentifier().unapply(name);
  }

  /** Loads a table by its name in SQL, if it is one of Pennon's: fails with the catalog's words. */
  static void load(SparkSession session, Seq<String> name) {
    Option<Tuple2<CatalogPlugin, Identifier>> named = named(session, name);
    if (named.isDefined() && named.get()._1() instanceof WorkerCatalog catalog) {
      catalog.loadTable(named.get()._2());
    }
  }
}
