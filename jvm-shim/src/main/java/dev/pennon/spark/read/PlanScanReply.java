package dev.pennon.spark.read;

import dev.pennon.spark.tasks.PennonSplit;
import dev.pennon.spark.worker.SecretText;
import java.util.List;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;

/**
 * The worker's answer about a scan.
 *
 * @param plan the worker's name of the plan, for what is asked about it later
 * @param scan what executors send to the worker with every split
 * @param keys the reported grouping; empty when there is none
 * @param splits the number of splits
 * @param packed the splits where nothing groups by them; null where they are to be asked for
 * @param partitionsTotal all partitions of the table's snapshot
 * @param rows estimated or exact number of rows before residual filters
 * @param bytes bytes on disk of all columns
 * @param description the text for EXPLAIN
 * @param details the text for EXPLAIN FORMATTED
 * @param ordering the order that each split's rows can be read in; empty when none is known
 * @param filterColumns columns whose values, found while the query runs, can drop partitions
 * @param partitionColumns columns that every partition has one value of, which it names
 * @param guaranteedByPartitions positions of the predicates that partition values decide for all rows of the scan
 * @param evaluatedInScan positions of the predicates that the leaves' filters evaluate
 * @param streamOption an option of the reader that only streams have; null where it states none
 */
record PlanScanReply(
    String plan,
    SecretText scan,
    List<Transform> keys,
    int splits,
    List<PennonSplit.PackedSplit> packed,
    long partitionsTotal,
    OptionalLong rows,
    OptionalLong bytes,
    String description,
    String details,
    List<SortOrder> ordering,
    List<String> filterColumns,
    List<String> partitionColumns,
    List<Integer> guaranteedByPartitions,
    List<Integer> evaluatedInScan,
    String streamOption) {}
