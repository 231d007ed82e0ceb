package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.failures.WorkerFailure;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.command.AlterTableSetPropertiesCommand;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * Gives statements about partition fields to the catalog whose table they name, whatever parser
 * came first, and refuses others that Iceberg's parser has read.
 *
 * <p>Iceberg's parser reads such statements whosever the table is. Where it stands before Pennon's,
 * its commands on Pennon's tables are turned into Pennon's here. Its classes are known by their
 * names, for they need not be there.
 */
public final class StatementOwners extends Rule<LogicalPlan> {
  private static final String PLANS = "org.apache.spark.sql.catalyst.plans.logical.";

  /** Instead of a text: what only Pennon's parser reads as Pennon means it. */
  private static final String OTHERS = "another's";

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof SetTableProperties change
        && change.table() instanceof ResolvedTable resolved
        && !(resolved.catalog() instanceof WorkerCatalog)) {
      return withoutStatement(plan, change.properties());
    }
    // What Spark makes of it for a table of its own catalog.
    if (plan instanceof AlterTableSetPropertiesCommand change) {
      return withoutStatement(plan, change.properties());
    }
    String command = plan.getClass().getName();
    String text = command.startsWith(PLANS) ? text(command, plan) : "";
    return !text.isEmpty() && plan.productElement(0) instanceof scala.collection.Seq<?> name
        ? taken(name, text).orElse(plan)
        : plan;
  }

  /** A command of Iceberg as the text of a statement; empty for any other. */
  private static String text(String command, LogicalPlan plan) {
    return switch (command.substring(PLANS.length())) {
      case "AddPartitionField" -> "ADD PARTITION FIELD " + part(plan, 1) + part(plan, 2);
      case "DropPartitionField" -> "DROP PARTITION FIELD " + part(plan, 1);
      case "ReplacePartitionField" ->
          "REPLACE PARTITION FIELD " + part(plan, 1) + " WITH " + part(plan, 2) + part(plan, 3);
      case "SetWriteDistributionAndOrdering", "CreateOrReplaceTag", "DropTag",
          "CreateOrReplaceBranch", "DropBranch", "SetIdentifierFields", "DropIdentifierFields" ->
          OTHERS;
      default -> "";
    };
  }

  /** A transform, or the name after AS. */
  private static String part(LogicalPlan plan, int index) {
    Object element = plan.productElement(index);
    if (element instanceof Transform transform) {
      return transform.describe();
    }
    return element instanceof Option<?> name && name.isDefined()
        ? " AS " + Columns.quoted(name.get().toString())
        : "";
  }

  private Optional<LogicalPlan> taken(scala.collection.Seq<?> name, String text) {
    String table =
        Columns.quoted(items(name).stream().map(Object::toString).toArray(String[]::new));
    if (PennonParser.fullName(SparkSession.active(), table).isEmpty()) {
      return Optional.empty();
    }
    if (text.equals(OTHERS)) {
      throw WorkerFailure.of("STATEMENT_READ_BY_ANOTHER", "table", table).raise();
    }
    SparkSession session = SparkSession.active();
    String statement = PennonParser.inWordsOfSpark(session, "ALTER TABLE " + table + " " + text);
    return Optional.of(PennonParser.plan(session, statement));
  }

  /** In a script, USE can change the catalog after the statement was read. */
  private static LogicalPlan withoutStatement(LogicalPlan plan, Map<String, String> properties) {
    if (properties.contains(TableStatements.PROPERTY)) {
      throw WorkerFailure.of("PARTITION_FIELDS_NOT_SUPPORTED").raise();
    }
    return plan;
  }
}
