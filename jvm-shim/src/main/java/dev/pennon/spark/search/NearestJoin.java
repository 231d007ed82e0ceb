package dev.pennon.spark.search;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerInterpreter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.api.python.PythonEvalType;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.VectorCosineSimilarity;
import org.apache.spark.sql.catalyst.expressions.VectorInnerProduct;
import org.apache.spark.sql.catalyst.expressions.VectorL2Distance;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.NearestByDistance$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.NearestByJoin;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * A join with the nearest rows of a table of Pennon as a function over Arrow batches of its left
 * side. Only Spark 4.3 and later has such joins, and {@link NearestJoinRule} alone asks for this.
 *
 * @param query what the left side looks for
 * @param vector the column that it is compared with
 * @param metric what the worker calls the distance
 */
record NearestJoin(Expression query, AttributeReference vector, String metric) {
  /** The worker's answer: nothing where Spark has to compute the join. */
  record PlanNearestReply(String function, String python) {}

  /** The join in another form; the node itself where Spark has to compute it. */
  static LogicalPlan rewritten(LogicalPlan plan) {
    NearestByJoin join = (NearestByJoin) plan;
    SearchedTable table = SearchedTable.of(join.right()).orElse(null);
    NearestJoin nearest = table == null ? null : of(join);
    if (nearest == null) {
      return plan;
    }
    StructType joined = schemaOf(items(join.output()));
    PlanNearestReply reply = nearest.planned(join, table, joined);
    return reply.function().isEmpty() ? plan : nearest.mapped(join, reply, joined);
  }

  private static NearestJoin of(NearestByJoin join) {
    boolean isDistance = join.direction() == NearestByDistance$.MODULE$;
    Expression ranking = join.rankingExpression();
    if (ranking instanceof VectorL2Distance far && isDistance) {
      return of(join, far.left(), far.right(), "l2");
    }
    if (ranking instanceof VectorCosineSimilarity near && !isDistance) {
      return of(join, near.left(), near.right(), "cosine");
    }
    if (ranking instanceof VectorInnerProduct near && !isDistance) {
      return of(join, near.left(), near.right(), "dot");
    }
    return null;
  }

  private static NearestJoin of(NearestByJoin join, Expression one, Expression other, String by) {
    boolean isFirst = one instanceof AttributeReference column && isOf(join.right(), column);
    Expression query = isFirst ? other : one;
    return (isFirst ? one : other) instanceof AttributeReference vector
            && isOf(join.right(), vector)
            && isOf(join.left(), query)
            && query.deterministic()
        ? new NearestJoin(query, vector, by)
        : null;
  }

  private static boolean isOf(LogicalPlan side, Expression value) {
    return value.references().subsetOf(side.outputSet());
  }

  private PlanNearestReply planned(NearestByJoin join, SearchedTable table, StructType joined) {
    ObjectNode request = table.table().handle().request("plan_nearest");
    request.put("column", vector.name()).put("metric", metric).put("k", join.numResults());
    request.put("exact", !join.approx());
    request.put("keeps_unmatched", join.joinType() != Inner$.MODULE$);
    request.set("where", Messages.strings(table.where()));
    request.put("time_zone", SQLConf.get().sessionLocalTimeZone());
    List<String> columns = items(join.right().output()).stream().map(Attribute::name).toList();
    request.set("columns", Messages.strings(columns));
    request.set("schema", Messages.parse(joined.json()));
    return Replies.answer(request, PlanNearestReply.class);
  }

  private LogicalPlan mapped(NearestByJoin join, PlanNearestReply reply, StructType joined) {
    List<Expression> given = new ArrayList<>(items(join.left().output()));
    given.add(query);
    List<NamedExpression> asked = new ArrayList<>();
    for (Expression value : given) {
      asked.add(Columns.named(value, name(asked.size()), NamedExpression.newExprId()));
    }
    LogicalPlan left = new Project(sequence(asked), join.left());
    PythonUDF function =
        new PythonUDF(
            "nearest",
            new SimplePythonFunction(
                Base64.getDecoder().decode(reply.function()),
                new HashMap<>(),
                new ArrayList<>(),
                WorkerInterpreter.ofTasks(),
                reply.python(),
                new ArrayList<>(),
                null),
            joined,
            sequence(new ArrayList<Expression>(items(left.output()))),
            PythonEvalType.SQL_MAP_ARROW_ITER_UDF(),
            true,
            NamedExpression.newExprId());
    List<Attribute> output = new ArrayList<>();
    List<NamedExpression> renamed = new ArrayList<>();
    for (Attribute known : items(join.output())) {
      output.add(Columns.column(name(output.size()), known.dataType(), true));
      renamed.add(Columns.named(output.get(output.size() - 1), known.name(), known.exprId()));
    }
    LogicalPlan rows = new MapInArrow(function, sequence(output), left, false, Option.empty());
    return new Project(sequence(renamed), rows);
  }

  private static StructType schemaOf(List<Attribute> columns) {
    StructType schema = new StructType();
    for (Attribute column : columns) {
      schema = schema.add(name(schema.size()), column.dataType(), true);
    }
    return schema;
  }

  /** Both sides may have columns of one name, which PySpark tells apart by their names. */
  private static String name(int place) {
    return "c" + place;
  }
}
