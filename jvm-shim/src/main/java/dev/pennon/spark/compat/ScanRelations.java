package dev.pennon.spark.compat;

import static dev.pennon.spark.compat.Sequences.appended;
import static dev.pennon.spark.compat.Sequences.empty;
import static dev.pennon.spark.compat.Sequences.items;
import static dev.pennon.spark.compat.Sequences.sequence;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Option;
import scala.collection.immutable.Seq;

/** Copies of a scan's node in the optimized plan: each Spark adds a parameter to its constructor. */
public final class ScanRelations {
  private static final int SCAN = 1;
  private static final int OUTPUT = 2;
  private static final int KEY_GROUPED_PARTITIONING = 3;
  private static final int ORDERING = 4;

  private ScanRelations() {}

  /**
   * The node with another scan.
   *
   * @param keys the keys that the scan reports, or null where Spark is to ask the scan
   * @param ordering the order of the rows of each of its partitions; empty where they have none
   */
  public static LogicalPlan replaced(
      DataSourceV2ScanRelation relation,
      Scan scan,
      Seq<AttributeReference> output,
      List<? extends Expression> keys,
      List<SortOrder> ordering) {
    Object[] parameters = parameters(relation, scan, output);
    parameters[KEY_GROUPED_PARTITIONING] =
        keys == null ? Option.empty() : Option.apply(sequence(keys));
    parameters[ORDERING] = ordering.isEmpty() ? Option.empty() : Option.apply(sequence(ordering));
    return relation.makeCopy(parameters);
  }

  /** The node with a scan of fewer columns; all else that is known of it holds. */
  public static LogicalPlan narrowed(
      DataSourceV2ScanRelation relation, Scan scan, Seq<AttributeReference> output) {
    return relation.makeCopy(parameters(relation, scan, output));
  }

  /**
   * A node whose scan stands for several, of which nothing is known but its columns.
   *
   * @param key its last column, constant over each of its partitions; null where there is none
   */
  public static LogicalPlan ofSeveral(
      List<DataSourceV2ScanRelation> scans, Scan scan, Seq<AttributeReference> others,
      AttributeReference key) {
    Stream<Table> tables = scans.stream().map(one -> one.relation().table());
    String names = tables.map(Table::name).distinct().collect(Collectors.joining(", "));
    Object[] first = items(scans.get(0).relation().productIterator().toSeq()).toArray();
    first[0] = new ReadTables(names);
    Seq<AttributeReference> output = key == null ? others : appended(others, key);
    Object[] parameters = parameters(scans.get(0), scan, output);
    parameters[0] = scans.get(0).relation().makeCopy(first);
    for (int other = KEY_GROUPED_PARTITIONING; other < parameters.length; other++) {
      parameters[other] = nothing(parameters[other]);
    }
    if (key != null) {
      parameters[KEY_GROUPED_PARTITIONING] = Option.apply(sequence(List.of(key)));
    }
    return scans.get(0).makeCopy(parameters);
  }

  /** Spark wants a scan to have one table, and shows its name. */
  private record ReadTables(String name) implements Table {
    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }
  }

  private static Object[] parameters(
      DataSourceV2ScanRelation relation, Scan scan, Seq<AttributeReference> output) {
    Object[] parameters = items(relation.productIterator().toSeq()).toArray();
    parameters[SCAN] = scan;
    parameters[OUTPUT] = output;
    return parameters;
  }

  /** Keys and ordering are options, pushed filters a sequence, whether scans merge a flag. */
  private static Object nothing(Object parameter) {
    if (parameter instanceof Boolean) {
      return false;
    }
    return parameter instanceof Option ? Option.empty() : empty();
  }
}
