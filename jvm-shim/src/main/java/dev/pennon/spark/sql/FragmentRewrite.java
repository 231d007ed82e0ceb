package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import dev.pennon.spark.compat.ScanRelations;
import dev.pennon.spark.read.DerivedKeyReply;
import dev.pennon.spark.read.FragmentReply;
import dev.pennon.spark.read.FragmentScan;
import dev.pennon.spark.read.PennonScan;
import dev.pennon.spark.sql.PlanOutline.Node;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Puts one scan in the place of each part of a query that the worker takes over.
 *
 * <p>Spark optimizes the plan of an IN, an EXISTS or a scalar subquery before it may make a join of
 * it. So a fragment is marked with the columns of the query that it was a part of: one that is met
 * in another query is restored, and what is around it looked at as a whole.
 */
final class FragmentRewrite {
  private static final Logger LOG = LoggerFactory.getLogger(FragmentRewrite.class);

  private final DerivedKeyReply reply;
  private final PlanOutline outline;
  private final List<ExprId> query;

  FragmentRewrite(DerivedKeyReply reply, PlanOutline outline, LogicalPlan plan) {
    this.reply = reply;
    this.outline = outline;
    this.query = OutdatedKeys.query(plan);
  }

  /** The plan of a node that became a fragment; null for any other. */
  LogicalPlan planOf(Node node) {
    FragmentReply fragment = reply.fragments().get(node.position());
    if (fragment == null) {
      return null;
    }
    try {
      LogicalPlan limited = outline.limited(node);
      if (limited == null) {
        return replaced(node, null, fragment);
      }
      Node below = node.children().get(0);
      return node.plan().withNewChildren(sequence(List.of(replaced(below, limited, fragment))));
    } catch (RuntimeException e) {
      LOG.warn("Spark executes what the worker was to execute: {}", node.plan(), e);
      return null;
    }
  }

  private LogicalPlan replaced(Node node, LogicalPlan limited, FragmentReply fragment) {
    LogicalPlan plan = node.plan();
    SplitAggregate split = outline.splitOf(node);
    if (fragment.mode() == FragmentReply.Mode.ROWS) {
      List<AttributeReference> output = new ArrayList<>();
      for (Attribute attribute : items(plan.output())) {
        output.add((AttributeReference) attribute);
      }
      return relation(fragment, source(plan, plan, limited), output);
    }
    FragmentScan.Source source = source(plan, split.partial(), limited);
    LogicalPlan columns = relation(fragment, source, split.columns());
    return fragment.mode() == FragmentReply.Mode.PARTIAL
        ? split.mergedOver(columns)
        : split.finishedOver(columns);
  }

  private FragmentScan.Source source(LogicalPlan node, LogicalPlan origin, LogicalPlan limited) {
    return new FragmentScan.Source(node, origin, limited == null ? origin : limited, query);
  }

  private static LogicalPlan relation(
      FragmentReply fragment, FragmentScan.Source source, List<AttributeReference> output) {
    List<Long> ids = output.stream().map(column -> column.exprId().id()).toList();
    if (!ids.equals(fragment.columns())) {
      throw new IllegalStateException(
          "the worker's columns are " + fragment.columns() + ", the plan's " + ids);
    }
    StructType schema = new StructType();
    for (AttributeReference column : output) {
      schema =
          schema.add(
              FragmentText.columnName(column.exprId().id()), column.dataType(), column.nullable());
    }
    return ScanRelations.unordered(
        firstTable(source.origin()), new FragmentScan(fragment, schema, source), sequence(output));
  }

  /** Spark wants a scan to have a table; it shows its name. */
  private static DataSourceV2ScanRelation firstTable(LogicalPlan plan) {
    for (LogicalPlan leaf : items(plan.collectLeaves())) {
      if (leaf instanceof DataSourceV2ScanRelation relation
          && relation.scan() instanceof PennonScan) {
        return relation;
      }
    }
    throw new IllegalStateException("a fragment holds no scan");
  }

  /** Whether a fragment was made in another query: in a subquery that is a join by now. */
  static boolean isOutdatedIn(LogicalPlan plan) {
    List<ExprId> query = OutdatedKeys.query(plan);
    return fragmentsAmong(plan.collectLeaves()).stream()
        .anyMatch(scan -> !scan.source().query().equals(query));
  }

  /** The plan as it was before fragments were made of parts of it. */
  static LogicalPlan restoredIn(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof FragmentScan scan) {
      return renamed(scan.source().origin(), relation.output());
    }
    for (FragmentScan scan : fragmentsAmong(plan.children())) {
      FragmentScan.Source source = scan.source();
      if (source.isSplit() && OutdatedKeys.query(plan).equals(OutdatedKeys.query(source.node()))) {
        return source.node();
      }
    }
    List<LogicalPlan> children = new ArrayList<>();
    items(plan.children()).forEach(child -> children.add(restoredIn(child)));
    return plan.withNewChildren(sequence(children));
  }

  private static LogicalPlan renamed(LogicalPlan plan, Seq<AttributeReference> wanted) {
    List<NamedExpression> columns = new ArrayList<>();
    boolean isSame = true;
    for (int i = 0; i < wanted.size(); i++) {
      Attribute given = plan.output().apply(i);
      AttributeReference column = wanted.apply(i);
      isSame &= given.exprId().equals(column.exprId());
      columns.add(
          new Alias(
              given,
              column.name(),
              column.exprId(),
              column.qualifier(),
              Option.apply(column.metadata()),
              empty()));
    }
    return isSame ? plan : new Project(sequence(columns), plan);
  }

  private static List<FragmentScan> fragmentsAmong(Seq<LogicalPlan> plans) {
    List<FragmentScan> scans = new ArrayList<>();
    for (LogicalPlan plan : items(plans)) {
      if (plan instanceof DataSourceV2ScanRelation relation
          && relation.scan() instanceof FragmentScan scan) {
        scans.add(scan);
      }
    }
    return scans;
  }
}
