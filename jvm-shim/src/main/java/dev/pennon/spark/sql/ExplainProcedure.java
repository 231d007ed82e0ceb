package dev.pennon.spark.sql;

import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** A procedure that plans a query, does not run it, and describes what it saw in rows of text. */
abstract class ExplainProcedure implements UnboundProcedure, BoundProcedure {
  private final String name;
  private final String[] columns;

  private record Rows(StructType readSchema, InternalRow... rows) implements LocalScan {}

  ExplainProcedure(String name, String... columns) {
    this.name = name;
    this.columns = columns;
  }

  /** The rows, each with a text for each column, of the query that the supplier plans. */
  abstract Stream<Stream<String>> explain(Supplier<SparkPlan> planning);

  @Override
  public String name() {
    return name;
  }

  @Override
  public BoundProcedure bind(StructType argumentTypes) {
    return this;
  }

  @Override
  public ProcedureParameter[] parameters() {
    return new ProcedureParameter[] {
      ProcedureParameter.in("query", DataTypes.StringType).build()
    };
  }

  /** The answer depends on the tables as they are now. */
  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public Iterator<Scan> call(InternalRow arguments) {
    StructType schema = new StructType();
    for (String column : columns) {
      schema = schema.add(column, DataTypes.StringType);
    }
    InternalRow[] rows =
        explain(() -> planned(arguments.getString(0)))
            .map(row -> new GenericInternalRow(row.map(UTF8String::fromString).toArray()))
            .toArray(InternalRow[]::new);
    return List.<Scan>of(new Rows(schema, rows)).iterator();
  }

  private static SparkPlan planned(String query) {
    SparkSession session = SparkSession.active();
    try {
      LogicalPlan parsed = session.sessionState().sqlParser().parsePlan(query);
      return session
          .sessionState()
          .executePlan(parsed, CommandExecutionMode.SKIP())
          .executedPlan();
    } catch (ParseException e) {
      throw sneak(e);
    }
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> RuntimeException sneak(Throwable failure) throws T {
    throw (T) failure;
  }
}
