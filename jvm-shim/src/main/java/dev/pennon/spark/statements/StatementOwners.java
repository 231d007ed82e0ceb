package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.PennonCatalog;
import dev.pennon.spark.catalog.SparkTransforms;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.command.AlterTableSetPropertiesCommand;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * Gives statements about partition fields to the catalog whose table they name, whatever parser
 * came first.
 *
 * <p>Iceberg's parser reads such statements whosever the table is. Where it stands before Pennon's,
 * its commands on Pennon's tables are turned into Pennon's here. Its classes are known by their
 * names, for they need not be there.
 */
public final class StatementOwners extends Rule<LogicalPlan> {
  private static final String PLANS = "org.apache.spark.sql.catalyst.plans.logical.";

  private final SparkSession session;

  public StatementOwners(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof SetTableProperties change
        && change.table() instanceof ResolvedTable resolved
        && !(resolved.catalog() instanceof PennonCatalog)) {
      return withoutStatement(plan, change.properties());
    }
    // What Spark makes of it for a table of its own catalog.
    if (plan instanceof AlterTableSetPropertiesCommand change) {
      return withoutStatement(plan, change.properties());
    }
    String command = plan.getClass().getName();
    if (!command.startsWith(PLANS) || plan.productArity() == 0) {
      return plan;
    }
    Optional<String> text = text(command, plan);
    return text.isPresent() && plan.productElement(0) instanceof scala.collection.Seq<?> name
        ? taken(name, text.get()).orElse(plan)
        : plan;
  }

  /** A command of Iceberg as the text of a statement. */
  private static Optional<String> text(String command, LogicalPlan plan) {
    return switch (command.substring(PLANS.length())) {
      case "AddPartitionField" ->
          Optional.of("ADD PARTITION FIELD " + element(plan, 1) + element(plan, 2));
      case "DropPartitionField" -> Optional.of("DROP PARTITION FIELD " + element(plan, 1));
      case "ReplacePartitionField" ->
          Optional.of(
              "REPLACE PARTITION FIELD "
                  + element(plan, 1)
                  + " WITH "
                  + element(plan, 2)
                  + element(plan, 3));
      case "SetWriteDistributionAndOrdering" -> Optional.of("WRITE");
      default -> Optional.empty();
    };
  }

  /** A transform, or the name after AS. */
  private static String element(LogicalPlan plan, int index) {
    Object element = plan.productElement(index);
    if (element instanceof Transform transform) {
      return transform.describe();
    }
    return element instanceof Option<?> name && name.isDefined()
        ? " AS " + SparkTransforms.quoted(name.get().toString())
        : "";
  }

  private Optional<LogicalPlan> taken(scala.collection.Seq<?> name, String text) {
    String table =
        SparkTransforms.quoted(items(name).stream().map(Object::toString).toArray(String[]::new));
    if (PennonParser.fullName(session, table).isEmpty()) {
      return Optional.empty();
    }
    if (text.equals("WRITE")) {
      throw WorkerFailure.of("WRITE_ORDER_READ_BY_ANOTHER", "table", table).raise();
    }
    try {
      String statement = "ALTER TABLE " + table + " " + TableStatements.asProperty(text);
      return Optional.of(session.sessionState().sqlParser().parsePlan(statement));
    } catch (ParseException e) {
      throw WorkerFailure.protocol("Spark does not read " + text, e).raise();
    }
  }

  /** In a script, USE can change the catalog after the statement was read. */
  private static LogicalPlan withoutStatement(LogicalPlan plan, Map<String, String> properties) {
    if (properties.contains(TableStatements.PROPERTY)) {
      throw WorkerFailure.of("PARTITION_FIELDS_NOT_SUPPORTED").raise();
    }
    return plan;
  }
}
