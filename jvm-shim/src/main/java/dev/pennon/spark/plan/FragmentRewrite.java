package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.compat.ScanRelations;
import dev.pennon.spark.expressions.PlanTexts;
import dev.pennon.spark.fragments.DerivedKeys;
import dev.pennon.spark.fragments.FragmentReply;
import dev.pennon.spark.fragments.FragmentScan;
import dev.pennon.spark.outline.PlanOutline;
import dev.pennon.spark.outline.PlanOutline.Node;
import dev.pennon.spark.outline.SplitAggregate;
import dev.pennon.spark.read.PennonScan;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Puts one scan in the place of each part of a query that the worker takes over. */
final class FragmentRewrite {
  private static final Logger LOG = LoggerFactory.getLogger(FragmentRewrite.class);

  private final DerivedKeys keys;
  private final PlanOutline outline;
  private final Map<Integer, FragmentReply> fragments = new HashMap<>();

  FragmentRewrite(DerivedKeys keys, PlanOutline outline) {
    this.keys = keys;
    this.outline = outline;
    keys.reply().fragments().forEach(fragment -> fragments.put(fragment.root(), fragment));
  }

  /** The plan of a node that became a fragment, with its key if it reports one; null for others. */
  DerivedKeyRewrite.Keyed planOf(Node node) {
    FragmentReply fragment = fragments.get(node.position());
    if (fragment == null) {
      return null;
    }
    try {
      LogicalPlan limited = outline.limited(node);
      Node whole = limited == null ? node : node.children().get(0);
      LogicalPlan plan = replaced(whole, limited, fragment);
      plan = limited == null ? plan : node.plan().withNewChildren(sequence(List.of(plan)));
      Attribute key = fragment.keyed() ? plan.output().last() : null;
      return new DerivedKeyRewrite.Keyed(plan, (AttributeReference) key);
    } catch (RuntimeException e) {
      LOG.warn("Spark executes what the worker was to execute: {}", node.plan(), e);
      return null;
    }
  }

  private LogicalPlan replaced(Node node, LogicalPlan limited, FragmentReply fragment) {
    LogicalPlan plan = node.plan();
    SplitAggregate split = outline.splitOf(node);
    if (fragment.mode() == FragmentReply.Mode.ROWS) {
      List<AttributeReference> output =
          items(plan.output()).stream().map(AttributeReference.class::cast).toList();
      return relation(fragment, limited == null ? plan : limited, output);
    }
    boolean isMerged = fragment.mode() == FragmentReply.Mode.PARTIAL;
    LogicalPlan rows = limited == null ? split.partial(isMerged) : limited;
    LogicalPlan columns = relation(fragment, rows, split.columns(isMerged));
    return isMerged ? split.mergedOver(columns) : split.finishedOver(columns, fragment.keyed());
  }

  private LogicalPlan relation(
      FragmentReply fragment, LogicalPlan rows, List<AttributeReference> output) {
    PlanTexts texts = outline.texts();
    List<Long> ids = output.stream().map(column -> texts.number(column.exprId())).toList();
    if (!ids.equals(fragment.columns())) {
      throw new IllegalStateException(
          "the worker's columns are " + fragment.columns() + ", the plan's " + ids);
    }
    StructType schema = new StructType();
    for (AttributeReference column : output) {
      schema = schema.add(texts.name(column.exprId()), column.dataType(), column.nullable());
    }
    FragmentScan scan = new FragmentScan(fragment, keys.of(fragment.root()), schema, rows);
    AttributeReference key =
        fragment.keyed() ? Columns.column(PennonScan.DERIVED_KEY, DataTypes.LongType, false) : null;
    return ScanRelations.ofSeveral(scansOf(rows), scan, sequence(output), key);
  }

  private static List<DataSourceV2ScanRelation> scansOf(LogicalPlan plan) {
    return items(plan.collectLeaves()).stream()
        .filter(leaf -> PennonScan.of(leaf) != null)
        .map(DataSourceV2ScanRelation.class::cast)
        .toList();
  }
}
