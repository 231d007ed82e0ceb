package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.catalog.JoinSettings;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
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
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code CALL catalog.system.explain_join('SELECT …')}: what each join, aggregate and window of a
 * query finds of partitionings, and why it shuffles where it does. The query is planned, not run.
 */
public final class ExplainJoin implements UnboundProcedure, BoundProcedure {
  public static final String NAME = "explain_join";

  private static final String[] COLUMNS = {
    "operator", "left", "right", "common", "reason", "remedy"
  };

  record Rows(StructType readSchema, InternalRow... rows) implements LocalScan {}

  @Override
  public String name() {
    return NAME;
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
    SparkSession session = SparkSession.active();
    // The optimizer may come by a plan twice; it then finds the same again.
    Set<JsonNode> verdicts = new LinkedHashSet<>();
    SparkPlan plan =
        DerivedKeyRule.listening(
            verdicts::add, () -> planned(session, arguments.getString(0)));
    List<InternalRow> rows = new ArrayList<>();
    for (JsonNode verdict : verdicts) {
      rows.add(row(Stream.of(COLUMNS).map(name -> verdict.path(name).asText())));
    }
    long count = shuffles(plan);
    Map<String, String> opposed = count == 0 ? Map.of() : JoinSettings.opposed();
    String settings =
        opposed.entrySet().stream()
            .map(each -> "the setting " + each.getKey() + " is " + each.getValue())
            .collect(Collectors.joining(", "));
    String remedy = opposed.isEmpty() ? "" : "unset " + String.join(", ", opposed.keySet());
    String shuffles = count + " shuffle(s) in the whole plan";
    rows.add(row(Stream.of("query", "", "", shuffles, settings, remedy)));
    StructType schema = new StructType();
    for (String column : COLUMNS) {
      schema = schema.add(column, DataTypes.StringType);
    }
    return List.<Scan>of(new Rows(schema, rows.toArray(InternalRow[]::new))).iterator();
  }

  static SparkPlan planned(SparkSession session, String query) {
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

  private static long shuffles(SparkPlan plan) {
    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      return shuffles(adaptive.initialPlan());
    }
    long below =
        items(plan.children()).stream().mapToLong(ExplainJoin::shuffles).sum();
    return below + (plan instanceof ShuffleExchangeLike ? 1 : 0);
  }

  static InternalRow row(Stream<String> values) {
    return new GenericInternalRow(values.map(UTF8String::fromString).toArray());
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> RuntimeException sneak(Throwable failure) throws T {
    throw (T) failure;
  }
}
