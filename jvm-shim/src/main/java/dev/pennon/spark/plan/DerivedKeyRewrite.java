package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.appended;
import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;
import static java.util.Objects.requireNonNull;

import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.compat.ScanRelations;
import dev.pennon.spark.expressions.PlanTexts;
import dev.pennon.spark.fragments.DeriveKeysReply;
import dev.pennon.spark.fragments.DerivedKeys;
import dev.pennon.spark.functions.Surrogate;
import dev.pennon.spark.outline.PlanOutline;
import dev.pennon.spark.outline.PlanOutline.Node;
import dev.pennon.spark.read.PennonScan;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CreateArray;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Inline;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Gives scans their derived key and lets joins, groupings and windows use it, as the worker
 * decided. Above the last operator that uses a key a projection removes it.
 */
final class DerivedKeyRewrite {
  /** A rewritten plan, and the attribute of the key that its rows are grouped by, if any. */
  record Keyed(LogicalPlan plan, AttributeReference key) {}

  private final DerivedKeys keys;
  private final DeriveKeysReply reply;
  private final FragmentRewrite fragments;
  private final PlanTexts texts;

  DerivedKeyRewrite(DerivedKeys keys, PlanOutline outline) {
    this.keys = keys;
    this.reply = keys.reply();
    this.fragments = new FragmentRewrite(keys, outline);
    this.texts = outline.texts();
  }

  LogicalPlan rewrite(Node node) {
    return withoutKey(node, rewritten(node));
  }

  private Keyed rewritten(Node node) {
    Keyed fragment = fragments.planOf(node);
    if (fragment != null) {
      return fragment;
    }
    boolean usesKey = reply.served().contains(node.position());
    return switch (node.kind()) {
      case SCAN -> scan(node);
      case PASS -> pass(node);
      case PROJECT -> project(node);
      case OPAQUE -> plain(node);
      case JOIN -> usesKey ? join(node) : plain(node);
      case GROUP -> usesKey ? group(node) : plain(node);
      case WINDOW -> usesKey ? window(node) : plain(node);
      case UNION -> usesKey ? union(node) : plain(node);
      case EXPAND -> usesKey ? expand(node) : plain(node);
    };
  }

  /** An operator over inputs without keys. */
  private Keyed plain(Node node) {
    List<LogicalPlan> children = node.children().stream().map(this::rewrite).toList();
    return new Keyed(node.plan().withNewChildren(sequence(children)), null);
  }

  private Keyed scan(Node node) {
    if (reply.packed().contains(node.position())) {
      return new Keyed(PackedScans.in(node.plan()), null);
    }
    String derivation = reply.scans().get(node.position());
    if (derivation == null) {
      return new Keyed(node.plan(), null);
    }
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node.plan();
    AttributeReference key = Columns.column(PennonScan.DERIVED_KEY, DataTypes.LongType, false);
    boolean keepsOrder =
        relation.ordering().exists(Seq::nonEmpty) && reply.ordered().contains(node.position());
    PennonScan scan =
        ((PennonScan) relation.scan())
            .withDerivedKeys(keys.of(node.position()), derivation, keepsOrder);
    List<SortOrder> ordering = new ArrayList<>();
    if (scan.isOrdered()) {
      ordering.add(new SortOrder(key, Ascending$.MODULE$, NullsFirst$.MODULE$, empty()));
      ordering.addAll(items(relation.ordering().get()));
    }
    LogicalPlan keyed =
        ScanRelations.replaced(
            relation, scan, appended(relation.output(), key), List.of(key), ordering);
    return new Keyed(keyed, key);
  }

  private Keyed pass(Node node) {
    List<LogicalPlan> children = new ArrayList<>();
    AttributeReference key = null;
    for (int i = 0; i < node.children().size(); i++) {
      Node child = node.children().get(i);
      if (i == node.through()) {
        Keyed through = rewritten(child);
        if (node.plan() instanceof Generate) {
          // It names its input's columns by position.
          through = withKeyLast(child, through);
        }
        key = through.key();
        children.add(through.plan());
      } else {
        children.add(rewrite(child));
      }
    }
    return new Keyed(node.plan().withNewChildren(sequence(children)), key);
  }

  private Keyed project(Node node) {
    Keyed child = rewritten(node.children().get(0));
    Project project = (Project) node.plan();
    Seq<NamedExpression> columns =
        child.key() == null
            ? project.projectList()
            : appended(project.projectList(), child.key());
    return new Keyed(project.copy(columns, child.plan()), child.key());
  }

  private Keyed join(Node node) {
    Join join = (Join) node.plan();
    Keyed left = side(node.children().get(0));
    Keyed right = side(node.children().get(1));
    // First, so that rows sorted by the join's own keys inside a partition stay sorted.
    Expression sameKey = new EqualTo(requireNonNull(left.key()), requireNonNull(right.key()));
    Option<Expression> on = Option.apply(new And(sameKey, join.condition().get()));
    Join keyed = join.copy(left.plan(), right.plan(), join.joinType(), on, join.hint());
    AttributeReference key = surviving(join.joinType(), left.key(), right.key());
    return new Keyed(key == null ? projected(node, keyed) : keyed, key);
  }

  /** A side of a join, its key derived or, where it has no partitioning, computed. */
  private Keyed side(Node side) {
    List<DeriveKeysReply.ComputedKey> functions = reply.computed().get(side.position());
    return functions == null ? rewritten(side) : computed(rewrite(side), functions);
  }

  /** The side without partitioning: Spark computes its key, and shuffles it by that key. */
  private Keyed computed(LogicalPlan plan, List<DeriveKeysReply.ComputedKey> functions) {
    Map<Long, Expression> attributes = new HashMap<>();
    items(plan.output()).forEach(a -> attributes.put(texts.number(a.exprId()), a));
    List<Surrogate.Component> components = new ArrayList<>();
    List<Expression> arguments = new ArrayList<>();
    for (DeriveKeysReply.ComputedKey function : functions) {
      List<Expression> sources =
          function.columns().stream()
              .map(path -> path.in(attributes.get(path.attribute())))
              .toList();
      components.add(
          new Surrogate.Component(
              function.function(),
              function.numBuckets(),
              sources.stream().map(Expression::dataType).toList()));
      arguments.addAll(sources);
    }
    Alias key =
        Columns.named(
            new ApplyFunctionExpression(new Surrogate(components), sequence(arguments)),
            PennonScan.DERIVED_KEY,
            NamedExpression.newExprId());
    return new Keyed(
        new Project(appended(plan.output(), key), plan), (AttributeReference) key.toAttribute());
  }

  private static AttributeReference surviving(
      JoinType type, AttributeReference left, AttributeReference right) {
    return switch (PlanOutline.typeName(type)) {
      case "right" -> right;
      case "full" -> null;
      default -> left;
    };
  }

  private Keyed group(Node node) {
    Aggregate aggregate = (Aggregate) node.plan();
    Keyed child = rewritten(node.children().get(0));
    Aggregate keyed =
        aggregate.copy(
            preceded(child.key(), aggregate.groupingExpressions()),
            appended(aggregate.aggregateExpressions(), child.key()),
            child.plan(),
            aggregate.hint());
    return new Keyed(keyed, child.key());
  }

  private Keyed window(Node node) {
    Keyed child = rewritten(node.children().get(0));
    if (node.plan() instanceof Window window) {
      Window keyed =
          window.copy(
              window.windowExpressions(),
              preceded(child.key(), window.partitionSpec()),
              window.orderSpec(),
              child.plan(),
              window.hint());
      return new Keyed(keyed, child.key());
    }
    WindowGroupLimit limit = (WindowGroupLimit) node.plan();
    WindowGroupLimit keyed =
        limit.copy(
            preceded(child.key(), limit.partitionSpec()),
            limit.orderSpec(),
            limit.rankLikeFunction(),
            limit.limit(),
            child.plan());
    return new Keyed(keyed, child.key());
  }

  private Keyed union(Node node) {
    List<Keyed> inputs = new ArrayList<>();
    node.children().forEach(child -> inputs.add(withKeyLast(child, rewritten(child))));
    // A union's output has the ids of its first input's.
    return new Keyed(
        node.plan().withNewChildren(sequence(inputs.stream().map(Keyed::plan).toList())),
        inputs.get(0).key());
  }

  /**
   * The rows of an expansion as elements of an array, of which Spark makes rows: an expansion of
   * Spark's own forgets where its rows are.
   */
  private Keyed expand(Node node) {
    Expand expand = (Expand) node.plan();
    Keyed child = withKeyLast(node.children().get(0), rewritten(node.children().get(0)));
    List<Expression> rows = new ArrayList<>();
    for (Seq<Expression> projection : items(expand.projections())) {
      List<Expression> fields = new ArrayList<>();
      for (Expression value : items(projection)) {
        UTF8String name = UTF8String.fromString("c" + fields.size() / 2);
        fields.add(new Literal(name, DataTypes.StringType));
        fields.add(value);
      }
      rows.add(new CreateNamedStruct(sequence(fields)));
    }
    List<Object> unrequired = new ArrayList<>();
    for (int i = 0; i < child.plan().output().size() - 1; i++) {
      unrequired.add(i);
    }
    Generate generate =
        new Generate(
            new Inline(new CreateArray(sequence(rows))),
            sequence(unrequired),
            false,
            Option.empty(),
            expand.output(),
            child.plan());
    return new Keyed(generate, child.key());
  }

  /** A plan whose output is that of its node, and the key. */
  private static Keyed withKeyLast(Node node, Keyed keyed) {
    Seq<Attribute> output = keyed.plan().output();
    if (keyed.key() == null
        || (output.size() == node.plan().output().size() + 1 && output.last().equals(keyed.key()))) {
      return keyed;
    }
    Seq<NamedExpression> columns = appended(node.plan().output(), keyed.key());
    return new Keyed(new Project(columns, keyed.plan()), keyed.key());
  }

  private static LogicalPlan withoutKey(Node node, Keyed keyed) {
    return keyed.key() == null ? keyed.plan() : projected(node, keyed.plan());
  }

  /** Only the columns that the node had: what is above may count them. */
  private static LogicalPlan projected(Node node, LogicalPlan keyed) {
    return new Project(sequence(items(node.plan().output())), keyed);
  }

  /** The key first: rows that are sorted within each partition stay sorted by the whole list. */
  private static Seq<Expression> preceded(Expression key, Seq<Expression> items) {
    return sequence(Stream.concat(Stream.of(key), items(items).stream()).toList());
  }
}
