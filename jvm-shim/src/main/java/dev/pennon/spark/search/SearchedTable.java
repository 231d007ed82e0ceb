package dev.pennon.spark.search;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.compat.Sequences;
import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.tables.PennonTable;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * A table of Pennon below nothing but conditions and a choice of columns.
 *
 * @param where the conditions, every one of which the worker can read
 */
record SearchedTable(
    WorkerCatalog catalog, Identifier identifier, PennonTable table, List<String> where) {
  static Optional<SearchedTable> of(LogicalPlan plan) {
    if (plan instanceof SubqueryAlias alias) {
      return of(alias.child());
    }
    if (plan instanceof Project project) {
      boolean isChoice =
          Sequences.items(project.projectList()).stream()
              .allMatch(column -> column instanceof AttributeReference);
      return isChoice ? of(project.child()) : Optional.empty();
    }
    if (plan instanceof Filter filter) {
      Set<String> names = Set.of(filter.child().schema().fieldNames());
      // A time that the analyzer casts into the session's zone is a constant as soon as it is folded.
      Filter folded = (Filter) ConstantFolding$.MODULE$.apply(filter);
      String condition = ExpressionText.ofTable(folded.condition(), names);
      return condition == null
          ? Optional.empty()
          : of(filter.child()).map(below -> below.with(condition));
    }
    return plan instanceof DataSourceV2Relation relation
            && relation.table() instanceof PennonTable table
            && relation.catalog().isDefined()
            && relation.catalog().get() instanceof WorkerCatalog own
        ? Optional.of(new SearchedTable(own, relation.identifier().get(), table, List.of()))
        : Optional.empty();
  }

  private SearchedTable with(String condition) {
    List<String> all = new ArrayList<>(where);
    all.add(condition);
    return new SearchedTable(catalog, identifier, table, all);
  }
}
