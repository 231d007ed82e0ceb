package dev.pennon.spark.fragments;

import dev.pennon.spark.read.ColumnarBatchScan;
import dev.pennon.spark.read.DetailLines;
import dev.pennon.spark.read.PennonScan;
import dev.pennon.spark.read.ScanStatistics;
import dev.pennon.spark.tasks.ArithmeticPlaces;
import dev.pennon.spark.tasks.ArrowPartitionReaders;
import dev.pennon.spark.tasks.KeyedLeaf;
import dev.pennon.spark.tasks.Metric;
import dev.pennon.spark.tasks.PennonSplit;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.connector.SupportsMetadata;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A part of a query that the worker executes, as a scan: joins, filters and aggregates over the
 * partitions of one key group per task.
 *
 * @param fragment what the worker answered
 * @param tasks one row per task: its key and the worker's token
 * @param columns the columns that it sends
 * @param rows the plan whose rows it has
 */
public record FragmentScan(
    FragmentReply fragment, List<KeyedLeaf> tasks, StructType columns, LogicalPlan rows)
    implements ColumnarBatchScan, SupportsReportStatistics, SupportsMetadata {
  /** Whether an operator is a fragment. */
  public static boolean isFragment(LogicalPlan plan) {
    return plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof FragmentScan;
  }

  /** Whether an operator is a fragment that reports its key. */
  public static boolean isKeyed(LogicalPlan plan) {
    return isFragment(plan)
        && ((FragmentScan) ((DataSourceV2ScanRelation) plan).scan()).fragment.keyed();
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return tasks.stream()
        .map(task -> new PennonSplit(List.of(), List.of(task.split()), PennonSplit.keyRow(task.key())))
        .toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ArrowPartitionReaders(
        ArrowPartitionReaders.Source.fragment(fragment.scan(), ArithmeticPlaces.of(rows)),
        columns,
        fragment.keyed());
  }

  @Override
  public StructType readSchema() {
    return fragment.keyed() ? columns.add(PennonScan.DERIVED_KEY, DataTypes.LongType, false) : columns;
  }

  @Override
  public Statistics estimateStatistics() {
    return new ScanStatistics(fragment.rows(), fragment.bytes());
  }

  /** The worker's lines as one, for they stand within a tree of operators. */
  @Override
  public String description() {
    return fragment.description().lines().map(String::strip).collect(Collectors.joining("; "));
  }

  /** The lines of EXPLAIN FORMATTED, whole. */
  @Override
  public scala.collection.immutable.Map<String, String> getMetaData() {
    return DetailLines.of(fragment.details().lines());
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return Metric.shown(Metric.OF_FRAGMENT);
  }

  /** Planning is that of all its tables' scans. */
  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    long millis = PennonScan.in(rows).mapToLong(scan -> scan.planning().millis()).sum();
    return Metric.ofPlanning(
        fragment.partitionsRead(), new Metric.Planning(fragment.partitionsTotal(), millis));
  }

  /** Spark finds scans and exchanges to reuse by this. */
  @Override
  public boolean equals(Object other) {
    return other instanceof FragmentScan that
        && (fragment.scan().equals(that.fragment.scan())
            || !fragment.restricted() && !that.fragment.restricted())
        && (tasks.equals(that.tasks) || !fragment.keyed() && !that.fragment.keyed())
        && rows.sameResult(that.rows);
  }

  @Override
  public int hashCode() {
    return rows.semanticHash();
  }

  /** Tokens of tasks may hold storage options: they are never shown. */
  @Override
  public String toString() {
    return fragment.toString();
  }
}
