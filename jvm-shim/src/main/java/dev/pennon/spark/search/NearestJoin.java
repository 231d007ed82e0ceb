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
import java.util.function.Predicate;
import org.apache.spark.api.python.PythonEvalType;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.NearestByDistance$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.NearestByJoin;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * A join with the nearest rows of a table of Pennon as a function over Arrow batches of its left
 * side. Only Spark 4.3 and later has such joins, and {@link NearestJoinRule} alone asks for this.
 *
 * @param query what the left side looks for
 * @param vector the column that it is compared with
 */
record NearestJoin(Expression query, AttributeReference vector) {
  /** The worker's answer: nothing where Spark has to compute the join. */
  record PlanNearestReply(String function, String python, String detail) {}

  /** The join in another form; the node itself where Spark has to compute it. */
  static LogicalPlan rewritten(LogicalPlan plan) {
    NearestByJoin join = (NearestByJoin) plan;
    SearchedTable table =
        SearchedTable.of(join.right())
            .filter(right -> right.isOfWorkers() && right.isOfOwnColumns())
            .orElse(null);
    NearestJoin nearest =
        of(join.rankingExpression(), value -> isOf(join.left(), value) && value.deterministic());
    if (table == null || nearest == null) {
      return plan;
    }
    // Both sides may have columns of one name, which PySpark tells apart by their names.
    List<Attribute> output = new ArrayList<>();
    items(join.output())
        .forEach(it -> output.add(Columns.column("c" + output.size(), it.dataType(), true)));
    PlanNearestReply reply = nearest.planned(join, table, schemaOf(output));
    return reply.function().isEmpty() ? plan : nearest.mapped(join, reply, output);
  }

  /** What a value compares with a column; null where that is not all that it does. */
  static NearestJoin of(Expression ranking, Predicate<Expression> isQuery) {
    List<Expression> compared = items(ranking.children());
    int at = compared.size() == 2 && isQuery.test(compared.get(0)) ? 1 : 0;
    return compared.size() == 2
            && isQuery.test(compared.get(1 - at))
            && compared.get(at) instanceof AttributeReference vector
            && !isQuery.test(vector)
        ? new NearestJoin(compared.get(1 - at), vector)
        : null;
  }

  private static boolean isOf(LogicalPlan side, Expression value) {
    return value.references().subsetOf(side.outputSet());
  }

  private PlanNearestReply planned(NearestByJoin join, SearchedTable table, StructType joined) {
    ObjectNode request = table.table().handle().request("plan_nearest");
    request.put("column", vector.name()).put("k", join.numResults());
    request.put("function", join.rankingExpression().prettyName());
    request.put("distance", join.direction() == NearestByDistance$.MODULE$);
    request.put("exact", !join.approx());
    request.put("keeps_unmatched", join.joinType() != Inner$.MODULE$);
    request.set("where", Messages.strings(table.where()));
    request.put("time_zone", SQLConf.get().sessionLocalTimeZone());
    List<String> columns = items(join.right().output()).stream().map(Attribute::name).toList();
    request.set("columns", Messages.strings(columns));
    request.set("schema", Messages.parse(joined.json()));
    return Replies.answer(request, PlanNearestReply.class);
  }

  private LogicalPlan mapped(NearestByJoin join, PlanNearestReply reply, List<Attribute> output) {
    List<Expression> given = new ArrayList<>(items(join.left().output()));
    given.add(query);
    List<NamedExpression> asked = new ArrayList<>();
    for (Expression value : given) {
      asked.add(Columns.named(value, "c" + asked.size(), NamedExpression.newExprId()));
    }
    LogicalPlan left = new Project(sequence(asked), join.left());
    PythonUDF function =
        new PythonUDF(
            reply.detail(), // which EXPLAIN shows
            new SimplePythonFunction(
                Base64.getDecoder().decode(reply.function()),
                new HashMap<>(),
                new ArrayList<>(),
                WorkerInterpreter.ofTasks(),
                reply.python(),
                new ArrayList<>(),
                null),
            schemaOf(output),
            sequence(new ArrayList<Expression>(items(left.output()))),
            PythonEvalType.SQL_MAP_ARROW_ITER_UDF(),
            true,
            NamedExpression.newExprId());
    List<NamedExpression> renamed = new ArrayList<>();
    for (Attribute known : items(join.output())) {
      renamed.add(Columns.named(output.get(renamed.size()), known.name(), known.exprId()));
    }
    LogicalPlan rows = new MapInArrow(function, sequence(output), left, false, Option.empty());
    return new Project(sequence(renamed), rows);
  }

  private static StructType schemaOf(List<Attribute> columns) {
    return DataTypeUtils.fromAttributes(sequence(columns));
  }
}
