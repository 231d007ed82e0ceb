package dev.pennon.spark.plan;

import dev.pennon.spark.catalog.RowsProcedure;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.statements.PennonParser;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SupportsSubquery;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTableAsSelectPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.unsafe.types.UTF8String;

/** A procedure that plans a query, does not run it, and describes what it saw in rows of text. */
public final class ExplainProcedure extends RowsProcedure {
  public static final List<UnboundProcedure> ALL =
      List.of(
          new ExplainProcedure("explain_join", ExplainJoin::explain, ExplainJoin.COLUMNS),
          new ExplainProcedure("explain_scan", ExplainScan::explain, ExplainScan.COLUMNS));

  private final Function<Supplier<SparkPlan>, Stream<Stream<String>>> explanation;
  private final List<String> columns;

  /**
   * A procedure of one parameter.
   *
   * @param explanation gives the rows, each with a text for each column, of what a supplier plans
   */
  private ExplainProcedure(
      String name,
      Function<Supplier<SparkPlan>, Stream<Stream<String>>> explanation,
      List<String> columns) {
    super(name, List.of(ProcedureParameter.in("query", DataTypes.StringType).build()));
    this.explanation = explanation;
    this.columns = columns;
  }

  @Override
  protected Rows answer(InternalRow arguments) {
    Stream<StructField> fields =
        columns.stream().map(name -> DataTypes.createStructField(name, DataTypes.StringType, true));
    InternalRow[] rows =
        explanation.apply(() -> planned(arguments.getString(0)))
            .map(row -> new GenericInternalRow(row.map(UTF8String::fromString).toArray()))
            .toArray(InternalRow[]::new);
    return new Rows(DataTypes.createStructType(fields.toList()), rows);
  }

  private SparkPlan planned(String query) {
    SparkSession session = SparkSession.active();
    LogicalPlan parsed = PennonParser.plan(session, query);
    if (!readsRows(parsed)) {
      throw WorkerFailure.of("STATEMENT_NOT_EXPLAINED", "statement", query, "procedure", name())
          .raise();
    }
    return session.sessionState().executePlan(parsed, CommandExecutionMode.SKIP()).executedPlan();
  }

  /** Whether a statement is a query, or changes or makes a table by the rows of one. */
  private static boolean readsRows(LogicalPlan statement) {
    return !(statement instanceof Command)
        || statement instanceof SupportsSubquery
        || statement instanceof V2CreateTableAsSelectPlan;
  }
}
