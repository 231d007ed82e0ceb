package dev.pennon.spark.outline;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.compat.Unions;
import dev.pennon.spark.expressions.PlanTexts;
import dev.pennon.spark.expressions.ScalarSubqueries;
import dev.pennon.spark.read.PennonScan;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.optimizer.BuildLeft$;
import org.apache.spark.sql.catalyst.optimizer.BuildSide;
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.AtomicType;
import scala.collection.immutable.Seq;

/**
 * The shape of a query plan as the worker is told it: scans, joins, groupings and how attributes
 * pass through them. What it does not know is opaque.
 */
public final class PlanOutline {
  /** What a node is to the rewrite; the worker gets the same names. */
  public enum Kind {
    SCAN, PASS, PROJECT, JOIN, GROUP, WINDOW, UNION, EXPAND, OPAQUE
  }

  /** A plan node, its position in the message, the child whose rows pass, and its children. */
  public record Node(LogicalPlan plan, Kind kind, int position, int through, List<Node> children) {}

  private final ArrayNode nodes = Messages.array();
  private final PlanTexts texts = new PlanTexts();
  private final BroadcastSide broadcasts;
  private final SQLConf conf;
  private final Map<Integer, SplitAggregate> splits = new HashMap<>();
  private final RowLimits limits = new RowLimits();
  private int scans;
  private int asking;

  public PlanOutline(JoinSelectionHelper spark, SQLConf conf) {
    this.broadcasts = new BroadcastSide(spark, conf);
    this.conf = conf;
  }

  public ArrayNode message() {
    return nodes;
  }

  /** How the message names columns. */
  public PlanTexts texts() {
    return texts;
  }

  /** Whether there is a scan that could have a key: the worker need not be asked otherwise. */
  public boolean hasScans() {
    return scans > 0;
  }

  /** Whether there is an operator of which the worker may have something to say. */
  public boolean asksWorker() {
    return asking > 0;
  }

  /** The two halves of an aggregate; null when it has none. */
  public SplitAggregate splitOf(Node node) {
    return splits.get(node.position());
  }

  public Node outline(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation relation) {
      return scan(relation);
    }
    if (plan instanceof Filter filter) {
      Node child = outline(filter.child());
      ObjectNode message = node("filter").put("child", besideScalars(plan, child));
      // The worker filters by the rest where it reads: once is enough.
      describe(DecidedConditions.undecided(filter), message);
      return add(plan, Kind.PASS, message, List.of(child));
    }
    if (plan instanceof Project project) {
      Node child = outline(project.child());
      ObjectNode message = node("project").put("child", besideScalars(plan, child));
      message.set("expressions", texts.ofValues(items(project.projectList())));
      return add(plan, Kind.PROJECT, message, List.of(child));
    }
    if (plan instanceof Join join && !typeName(join.joinType()).equals("other")) {
      return join(join);
    }
    if (plan instanceof Union union) {
      return union(union);
    }
    if (plan instanceof Expand expand) {
      return expand(expand);
    }
    if (plan instanceof Generate || plan instanceof Sample || plan instanceof CollectMetrics) {
      return through(plan);
    }
    if (RowLimits.count(plan) != null) {
      return limit(plan);
    }
    if (plan instanceof Sort sort && limits.limited(sort) != null) {
      return top(sort);
    }
    if (plan instanceof Aggregate aggregate) {
      return group(aggregate);
    }
    if (plan instanceof Window window) {
      Node node = window("window", plan, window.child(), window.partitionSpec());
      WindowText.describe(window, texts, (ObjectNode) nodes.get(node.position()));
      asking++;
      return node;
    }
    if (plan instanceof WindowGroupLimit limit) {
      return window("group_limit", plan, limit.child(), limit.partitionSpec());
    }
    limits.note(plan);
    List<Node> children = items(plan.children()).stream().map(this::outline).toList();
    return plan instanceof OneRowRelation
        ? add(plan, Kind.OPAQUE, node("one_row"), children)
        : opaque(plan, children);
  }

  /**
   * Adds the fields {@code condition}, and {@code prunings}: its filters by the values of another
   * table, with the columns of that table.
   */
  private void describe(List<Expression> conjuncts, ObjectNode message) {
    ArrayNode prunings = message.putArray("prunings");
    List<Expression> kept = new ArrayList<>();
    for (Expression conjunct : conjuncts) {
      if (conjunct instanceof DynamicPruningSubquery pruning) {
        ObjectNode entry = prunings.addObject().put("id", texts.number(pruning.exprId()));
        ArrayNode columns = entry.put("in_broadcast", pruning.onlyInBroadcast()).putArray("columns");
        items(pruning.buildQuery().collectLeaves()).stream()
            .flatMap(leaf -> items(leaf.output()).stream())
            .forEach(column -> columns.add(texts.number(column.exprId())));
      } else {
        kept.add(conjunct);
      }
    }
    Expression condition = kept.stream().reduce(And::new).orElse(Literal.TrueLiteral());
    message.put("condition", texts.of(condition));
  }

  /** The position of an operator's rows beside the values of the subqueries that it names. */
  private int besideScalars(LogicalPlan plan, Node child) {
    int rows = child.position();
    for (LogicalPlan subquery : ScalarSubqueries.of(plan)) {
      int value = outline(subquery).position();
      nodes.add(node("scalar").put("rows", rows).put("value", value));
      rows = nodes.size() - 1;
    }
    return rows;
  }

  private Node scan(DataSourceV2ScanRelation relation) {
    if (!(relation.scan() instanceof PennonScan scan)) {
      return opaque(relation, List.of());
    }
    ObjectNode message = scan.outline().put("node", "scan");
    ArrayNode columns = message.putArray("columns");
    for (Attribute column : items(relation.output())) {
      ObjectNode entry = columns.addObject().put("attribute", texts.number(column.exprId()));
      // Spark may read a part of a nested one only; of all others the worker knows the types.
      boolean isNested = !(column.dataType() instanceof AtomicType);
      entry.put("name", column.name());
      entry.set("type", isNested ? Messages.parse(column.dataType().json()) : null);
    }
    scans++;
    return add(relation, Kind.SCAN, message, List.of());
  }

  private Node group(Aggregate aggregate) {
    Node child = outline(aggregate.child());
    ObjectNode message = node("group").put("child", child.position());
    message.set("grouping", texts.ofEach(items(aggregate.groupingExpressions())));
    message.set("columns", texts.ofValues(columnsOf(aggregate)));
    splits.put(nodes.size(), SplitAggregate.of(aggregate, texts, message));
    asking++;
    return add(aggregate, Kind.GROUP, message, List.of(child));
  }

  /** What an aggregate gives that is a column of its input, or a field of one. */
  private static List<NamedExpression> columnsOf(Aggregate aggregate) {
    return items(aggregate.aggregateExpressions()).stream()
        .filter(named -> Columns.of(Columns.valueOf(named)) != null).toList();
  }

  private Node join(Join join) {
    BuildSide broadcast = broadcasts.of(join);
    List<Node> children = List.of(outline(join.left()), outline(join.right()));
    asking++;
    Expression condition = join.condition().getOrElse(() -> Literal.TrueLiteral());
    ObjectNode message = node("join").put("left", children.get(0).position());
    message.put("right", children.get(1).position()).put("type", typeName(join.joinType()));
    message.put("text", condition.sql()).put("condition", texts.of(condition));
    message.set("compared", ComparedColumns.of(join, texts));
    message.put("null_safe", condition.exists(e -> e instanceof EqualNullSafe));
    boolean isLeft = broadcast == BuildLeft$.MODULE$;
    message.put("exists", join.joinType() instanceof ExistenceJoin existence
        ? (Long) texts.number(existence.exists().exprId()) : null);
    message.put("broadcast", broadcast == null ? null : isLeft ? "left" : "right");
    if (broadcast != null) {
      // A broadcast leaves the other side where it is: its grouping passes through.
      nodes.add(message);
      return new Node(join, Kind.PASS, nodes.size() - 1, isLeft ? 1 : 0, children);
    }
    return add(join, Kind.JOIN, message, children);
  }

  /** What leaves the rows of one child where they are, and is not for the worker. */
  private Node through(LogicalPlan plan) {
    Node child = outline(plan.children().head());
    ObjectNode message = node("pass").put("child", child.position()).put("name", nameOf(plan));
    return add(plan, Kind.PASS, message, List.of(child));
  }

  /** What people know an operator by. */
  private static String nameOf(LogicalPlan plan) {
    Object named = plan instanceof Generate generate ? generate.generator() : plan;
    return named instanceof Expression function ? function.prettyName() : plan.nodeName();
  }

  private Node union(Union union) {
    List<Node> children = items(union.children()).stream().map(this::outline).toList();
    ObjectNode message = node("union").put("keyed", Unions.keepKeys(conf));
    ArrayNode inputs = message.putArray("children");
    children.forEach(child -> inputs.add(child.position()));
    ArrayNode columns = message.putArray("columns");
    for (int i = 0; i < union.output().size(); i++) {
      ArrayNode column = columns.addArray().add(texts.number(union.output().apply(i).exprId()));
      for (Node child : children) {
        column.add(texts.number(child.plan().output().apply(i).exprId()));
      }
    }
    return add(union, Unions.keepKeys(conf) ? Kind.UNION : Kind.OPAQUE, message, children);
  }

  private Node expand(Expand expand) {
    Node child = outline(expand.child());
    ObjectNode message = node("expand").put("child", child.position());
    ArrayNode expressions = message.putArray("expressions");
    for (int i = 0; i < expand.output().size(); i++) {
      int column = i;
      Attribute output = expand.output().apply(i);
      ArrayNode entry = expressions.addArray().add(texts.number(output.exprId()));
      ArrayNode rows = entry.addArray();
      items(expand.projections()).forEach(row -> rows.add(texts.of(row.apply(column))));
      entry.add(Messages.parse(output.dataType().json()));
    }
    return add(expand, Kind.EXPAND, message, List.of(child));
  }

  private Node limit(LogicalPlan limit) {
    limits.note(limit);
    Node child = outline(limit.children().head());
    ObjectNode message = node("limit").put("child", child.position());
    message.put("count", RowLimits.count(limit)).put("name", limit.nodeName());
    return add(limit, limits.passesKeys(limit) ? Kind.PASS : Kind.OPAQUE, message, List.of(child));
  }

  private Node top(Sort sort) {
    Node child = outline(sort.child());
    ObjectNode message = node("top").put("child", child.position());
    limits.describe(sort, splitOf(child), texts, message);
    asking++;
    return add(sort, Kind.OPAQUE, message, List.of(child));
  }

  /** A limit, or a sort below one, with that limit; null for any other node. */
  public LogicalPlan limited(Node node) {
    return limits.limited(node.plan());
  }

  private Node window(String kind, LogicalPlan plan, LogicalPlan input, Seq<Expression> partitionSpec) {
    Node child = outline(input);
    ObjectNode message = node(kind).put("child", child.position());
    message.set("partition", texts.ofEach(items(partitionSpec)));
    return add(plan, Kind.WINDOW, message, List.of(child));
  }

  private Node opaque(LogicalPlan plan, List<Node> children) {
    // Functions of Python over groups want their keys together.
    boolean isOfGroups = plan.nodeName().matches("FlatMap(Co)?GroupsIn(Pandas|Arrow)");
    asking += isOfGroups ? 1 : 0;
    ObjectNode message = node("opaque").put("name", nameOf(plan)).put("of_groups", isOfGroups);
    ArrayNode positions = message.putArray("children");
    children.forEach(child -> positions.add(child.position()));
    return add(plan, Kind.OPAQUE, message, children);
  }

  private Node add(LogicalPlan plan, Kind kind, ObjectNode message, List<Node> children) {
    nodes.add(message);
    return new Node(plan, kind, nodes.size() - 1, 0, children);
  }

  private static ObjectNode node(String kind) {
    return Messages.object().put("node", kind);
  }

  /** A type of join by the worker's word; others, as LEFT SINGLE, are opaque to it. */
  public static String typeName(JoinType type) {
    if (type instanceof ExistenceJoin) {
      return "existence";
    }
    return switch (type.sql()) {
      case "INNER", "CROSS" -> "inner";
      case "LEFT OUTER" -> "left";
      case "RIGHT OUTER" -> "right";
      case "LEFT SEMI" -> "semi";
      case "LEFT ANTI" -> "anti";
      case "FULL OUTER" -> "full";
      default -> "other";
    };
  }
}
