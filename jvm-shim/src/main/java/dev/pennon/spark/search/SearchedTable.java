package dev.pennon.spark.search;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.tables.PennonTable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;

/**
 * A table of Pennon below nothing but conditions and projections.
 *
 * @param where the conditions, every one of which the worker can read
 * @param columns what is computed of the table's rows
 */
record SearchedTable(
    WorkerCatalog catalog,
    Identifier identifier,
    PennonTable table,
    List<String> where,
    List<NamedExpression> columns) {
  static Optional<SearchedTable> of(LogicalPlan plan) {
    // A time that the analyzer casts into the session's zone is a constant as soon as it is folded.
    LogicalPlan folded =
        ConstantFolding$.MODULE$.apply(EliminateSubqueryAliases$.MODULE$.apply(plan));
    var parts = PhysicalOperation.unapply(folded).get();
    if (!(parts._3() instanceof DataSourceV2Relation relation)
        || !(relation.table() instanceof PennonTable table)
        || !(relation.catalog().getOrElse(() -> null) instanceof WorkerCatalog own)) {
      return Optional.empty();
    }
    Set<String> names = Set.of(relation.schema().fieldNames());
    List<String> where = new ArrayList<>();
    items(parts._2()).forEach(condition -> where.add(ExpressionText.ofTable(condition, names)));
    return where.contains(null)
        ? Optional.empty()
        : Optional.of(
            new SearchedTable(own, relation.identifier().get(), table, where, items(parts._1())));
  }

  /** Whether the columns are some of the table's, as they are. */
  boolean isOfOwnColumns() {
    return columns.stream().allMatch(column -> column instanceof AttributeReference);
  }

  /**
   * Whether a statement may read what it changes, or replaces: it tells with its commit what its
   * scans have read, and knows of no search.
   */
  static boolean isChangedBy(LogicalPlan statement) {
    return statement instanceof V2WriteCommand write
        ? items(write.query().collectLeaves()).stream()
            .anyMatch(leaf -> leaf instanceof DataSourceV2Relation read
                && write.table() instanceof DataSourceV2Relation changed
                && read.identifier().equals(changed.identifier())
                && read.catalog().equals(changed.catalog()))
        : statement instanceof Command && statement.nodeName().startsWith("Replace");
  }

  /** Whether the session leaves to the workers what they can execute. */
  boolean isOfWorkers() {
    String setting = "spark.sql.catalog." + catalog.name() + ".execution";
    return !SQLConf.get().getConfString(setting, "worker").strip().equalsIgnoreCase("spark");
  }

  /** What a function finds in the table, by its arguments. */
  Table searched(String function, Map<String, String> arguments) {
    return catalog.searched(identifier, table.version(), function, arguments, where);
  }
}
