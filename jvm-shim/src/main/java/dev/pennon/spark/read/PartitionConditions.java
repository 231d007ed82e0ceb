package dev.pennon.spark.read;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Trees.nodes;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.expressions.TypedLiteral;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.ReplyTable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedPredicate;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * Conditions that only Spark can compute, evaluated on the values that partitions have.
 *
 * <p>What comes of it is one more predicate, which names the tuples that are left. Spark evaluates
 * the conditions again on the rows.
 *
 * @param columns what the condition names
 * @param condition all of them
 */
record PartitionConditions(List<Attribute> columns, Expression condition) {
  /**
   * The predicate that names what a plan's partitions leave under conditions; nothing where they
   * leave all, or where it is not known.
   *
   * @param conditions what no one has decided of the plan's rows
   */
  static Optional<String> of(ScanPlan plan, List<Expression> conditions) {
    Map<String, Attribute> columns = new LinkedHashMap<>();
    List<Expression> computable = new ArrayList<>();
    for (Expression condition : conditions) {
      if (isOfPartitions(condition, plan.reply().partitionColumns())) {
        items(condition.references().toSeq()).forEach(column -> columns.put(column.name(), column));
        computable.add(condition);
      }
    }
    return computable.stream()
        .reduce(And::new)
        .filter(all -> plan.splits().size() >= 2)
        .flatMap(all -> new PartitionConditions(List.copyOf(columns.values()), all).leftOf(plan));
  }

  private static boolean isOfPartitions(Expression condition, List<String> names) {
    List<Attribute> used = items(condition.references().toSeq());
    return !used.isEmpty()
        && used.stream().allMatch(column -> names.contains(column.name()))
        && condition.deterministic()
        && nodes(condition).stream().allMatch(PartitionConditions::isComputable);
  }

  private static boolean isComputable(Expression part) {
    // A column is bound before it is evaluated.
    return (part instanceof AttributeReference || !(part instanceof Unevaluable))
        && !(part instanceof PlanExpression)
        && !(part instanceof UserDefinedExpression);
  }

  private Optional<String> leftOf(ScanPlan plan) {
    ObjectNode request = plan.table().catalogRequest("partition_tuples").put("plan", plan.reply().plan());
    String[] names = columns.stream().map(Attribute::name).toArray(String[]::new);
    request.set("columns", Messages.strings(names));
    List<InternalRow> tuples = new ArrayList<>();
    ReplyTable.answer(request, batch -> append(batch, tuples));
    return leftOf(tuples);
  }

  private boolean hasTypes(VectorSchemaRoot root) {
    return root.getFieldVectors().stream()
        .map(vector -> ArrowUtils.fromArrowField(vector.getField()))
        .toList()
        .equals(columns.stream().map(Attribute::dataType).toList());
  }

  /** Adds tuples; none where Spark has other types than the worker, so that nothing is known. */
  private void append(VectorSchemaRoot root, List<InternalRow> tuples) {
    if (hasTypes(root)) {
      tuples.addAll(ReplyTable.rows(root, root.getFieldVectors()));
    }
  }

  private Optional<String> leftOf(List<InternalRow> tuples) {
    InterpretedPredicate predicate = new InterpretedPredicate(bound(condition));
    List<InternalRow> left = tuples.stream().filter(tuple -> isPossible(predicate, tuple)).toList();
    try {
      return left.size() == tuples.size() ? Optional.empty() : Optional.of(text(left));
    } catch (TypedLiteral.NotWritable reason) {
      return Optional.empty();
    }
  }

  private Expression bound(Expression part) {
    if (part instanceof AttributeReference column) {
      List<String> names = columns.stream().map(Attribute::name).toList();
      return new BoundReference(names.indexOf(column.name()), column.dataType(), true);
    }
    return part.mapChildren(this::bound);
  }

  /** An error of a value is one of the running query: such a tuple is kept. */
  private static boolean isPossible(InterpretedPredicate predicate, InternalRow tuple) {
    try {
      return predicate.eval(tuple);
    } catch (RuntimeException | LinkageError e) {
      return true;
    }
  }

  private String text(List<InternalRow> left) throws TypedLiteral.NotWritable {
    if (left.isEmpty()) {
      return "FALSE";
    }
    List<String> texts = new ArrayList<>();
    for (InternalRow tuple : left) {
      List<String> values = new ArrayList<>();
      for (int at = 0; at < columns.size(); at++) {
        DataType type = columns.get(at).dataType();
        Object value = tuple.get(at, type);
        String name = Columns.quoted(columns.get(at).name());
        values.add(
            value == null ? name + " IS NULL" : name + " = " + TypedLiteral.write(value, type));
      }
      texts.add(values.stream().collect(Collectors.joining(" AND ", "(", ")")));
    }
    return "(" + String.join(" OR ", texts) + ")";
  }
}
