package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.catalog.SortOrders;
import dev.pennon.spark.catalog.SparkTransforms;
import dev.pennon.spark.catalog.TableHandle;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerConnection;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * What the worker planned for one scan.
 *
 * @param table the table, pinned to a snapshot
 * @param predicates every predicate that the worker was given
 * @param schema the columns that the scan gives
 * @param scan what executors send to the worker with every split
 * @param token the worker's name of the plan, for what is asked about it later
 * @param keys the reported grouping; empty when there is none
 * @param splits the work, never empty when there are keys
 * @param rows estimated or exact number of rows before residual filters
 * @param bytes bytes on disk of all columns
 * @param description the worker's text for EXPLAIN
 * @param details its text for EXPLAIN FORMATTED
 * @param ordering the order that each split's rows can be read in; empty when none is known
 * @param filterColumns columns whose values, found while the query runs, can drop partitions
 * @param partitionColumns columns that every partition has one value of, which it names
 * @param packing how the leaves are packed where nothing groups by them
 * @param packedSplits the work when they are
 * @param isPacked whether they are; else each is a split
 * @param derivedKeys what stands under each key when the scan gives its derived key as last column;
 *     null when it does not
 * @param decided predicates that partition values decide for all rows of the scan
 * @param filtered predicates that the leaves' filters evaluate
 * @param planning what planning chose from, and how long it took
 */
record ScanPlan(
    TableHandle table,
    List<String> predicates,
    StructType schema,
    String scan,
    String token,
    List<Transform> keys,
    Splits splits,
    OptionalLong rows,
    OptionalLong bytes,
    String description,
    String details,
    List<SortOrder> ordering,
    List<String> filterColumns,
    List<String> partitionColumns,
    Packing packing,
    Splits packedSplits,
    boolean isPacked,
    KeyedLeaves derivedKeys,
    Set<String> decided,
    Set<String> filtered,
    Planning planning) {
  /** All partitions of the table's snapshot, and the time that the worker took to choose. */
  record Planning(long partitionsTotal, long millis) {}

  /** For how many tasks leaves are packed, and how much one of them reads at most. */
  record Packing(int numTasks, long maxBytes) {
    static Packing ofSession() {
      return new Packing(
          SparkSession.active().leafNodeDefaultParallelism(), SQLConf.get().filesMaxPartitionBytes());
    }

    ObjectNode addTo(ObjectNode request) {
      return request.put("num_tasks", numTasks).put("max_bytes", maxBytes);
    }
  }

  /** Key of the split that stands for none; any value is right, for it has no rows. */
  private static final long NO_SPLITS_KEY = 0;

  /**
   * Asks the worker for the plan; planning reads the manifest and opens no leaf.
   *
   * @param unrepeated the positions of predicates that nobody but the worker evaluates
   */
  static ScanPlan request(
      TableHandle table,
      List<String> predicates,
      List<Integer> unrepeated,
      StructType schema,
      boolean isOfRowChange) {
    Packing packing = Packing.ofSession();
    ObjectNode request = packing.addTo(table.request("plan_scan"));
    request.put("row_change", isOfRowChange);
    request.put("time_zone", SQLConf.get().sessionLocalTimeZone());
    request.set("predicates", Messages.strings(predicates));
    unrepeated.forEach(request.putArray("unrepeated")::add);
    request.set("schema", Messages.parse(schema.json()));
    long begun = System.nanoTime();
    JsonNode reply = WorkerConnection.answer(request);
    long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
    long total = Messages.field(reply, "PlanScanReply", "partitions_total").asLong();
    return of(table, predicates, schema, reply, packing, new Planning(total, millis));
  }

  /** Sends a request whose reply is followed by a table of splits. */
  private static List<PennonSplit> askForSplits(ObjectNode request) {
    try (WorkerConnection connection = WorkerConnection.ask(request).connection()) {
      List<PennonSplit> splits = SplitTable.read(connection.arrowChannel());
      connection.release();
      return splits;
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  private static ScanPlan of(
      TableHandle table,
      List<String> predicates,
      StructType schema,
      JsonNode reply,
      Packing packing,
      Planning planning) {
    List<Transform> keys = List.of(SparkTransforms.fromJson(Messages.field(reply, "PlanScanReply", "keys")));
    int size = Messages.field(reply, "PlanScanReply", "splits").asInt();
    Splits splits;
    if (size > 0) {
      ObjectNode request = table.catalogRequest("list_splits").put("plan", Messages.field(reply, "PlanScanReply", "plan").asText());
      request.set("schema", Messages.parse(schema.json()));
      splits = Splits.later(size, () -> askForSplits(request));
    } else if (keys.isEmpty()) {
      splits = Splits.of(List.of());
    } else {
      splits = Splits.of(List.of(PennonSplit.empty(new GenericInternalRow(keys.size()))));
    }
    String token = Messages.field(reply, "PlanScanReply", "plan").asText();
    return new ScanPlan(
        table,
        List.copyOf(predicates),
        schema,
        Messages.field(reply, "PlanScanReply", "scan").asText(),
        token,
        keys,
        splits,
        Messages.toOptional(Messages.field(reply, "PlanScanReply", "rows")),
        Messages.toOptional(Messages.field(reply, "PlanScanReply", "bytes")),
        Messages.field(reply, "PlanScanReply", "description").asText(),
        Messages.field(reply, "PlanScanReply", "details").asText(),
        SortOrders.fromJson(Messages.field(reply, "PlanScanReply", "ordering")),
        List.of(Messages.toStrings(Messages.field(reply, "PlanScanReply", "filter_columns"))),
        List.of(Messages.toStrings(Messages.field(reply, "PlanScanReply", "partition_columns"))),
        packing,
        packed(table, token, packing, Messages.field(reply, "PlanScanReply", "packed")),
        false,
        null,
        at(predicates, Messages.field(reply, "PlanScanReply", "decided")),
        at(predicates, Messages.field(reply, "PlanScanReply", "filtered")),
        planning);
  }

  private static Set<String> at(List<String> predicates, JsonNode positions) {
    Set<String> texts = new HashSet<>();
    positions.forEach(position -> texts.add(predicates.get(position.asInt())));
    return texts;
  }

  /** This plan with fewer columns: the same splits, read without the others. */
  ScanPlan narrowed(StructType narrower) {
    ScanPlan ofColumns = request(table, predicates, List.of(), narrower, false);
    return with(ofColumns, splits, isPacked, derivedKeys);
  }

  /** This plan with one more column: a key that is constant over each split (design §5). */
  ScanPlan withDerivedKeys(KeyedLeaves keyedLeaves) {
    return with(this, Splits.later(() -> keyed(splits.list(), keyedLeaves)), false, keyedLeaves);
  }

  private static List<PennonSplit> keyed(List<PennonSplit> leaves, KeyedLeaves keyedLeaves) {
    List<PennonSplit> keyed = new ArrayList<>();
    List<PennonSplit> ofKey = new ArrayList<>();
    for (int row = 0; row < keyedLeaves.size(); row++) {
      long key = keyedLeaves.key(row);
      if (!keyedLeaves.hasLeaf(row)) {
        keyed.add(PennonSplit.empty(keyRow(key)));
        continue;
      }
      PennonSplit leaf = leaves.get(keyedLeaves.leaf(row));
      String part = keyedLeaves.split(row);
      ofKey.add(part == null ? leaf : leaf.part(part));
      // The rows of a key stand together.
      if (row + 1 == keyedLeaves.size() || keyedLeaves.key(row + 1) != key) {
        keyed.add(PennonSplit.together(ofKey, keyRow(key)));
        ofKey.clear();
      }
    }
    if (keyed.isEmpty()) {
      keyed.add(PennonSplit.empty(keyRow(NO_SPLITS_KEY)));
    }
    return keyed;
  }

  private static InternalRow keyRow(long key) {
    return new GenericInternalRow(new Object[] {key});
  }

  /** This plan without keys, its leaves packed into as many splits as it pays to read at once. */
  ScanPlan packed() {
    return with(this, packedSplits, true, null);
  }

  /** The packed splits: those of few leaves come with the plan, others when they are needed. */
  private static Splits packed(TableHandle table, String token, Packing packing, JsonNode known) {
    return known.isNull()
        ? Splits.later(() -> packedUnder(table, token, packing, List.of()))
        : Splits.of(SplitTable.packed(known));
  }

  private static List<PennonSplit> packedUnder(
      TableHandle table, String token, Packing packing, List<String> runtimePredicates) {
    ObjectNode request = packing.addTo(table.catalogRequest("pack_splits").put("plan", token));
    request.set("predicates", Messages.strings(runtimePredicates));
    return askForSplits(request);
  }

  private ScanPlan with(
      ScanPlan ofColumns, Splits otherSplits, boolean otherIsPacked, KeyedLeaves otherKeys) {
    return new ScanPlan(
        table,
        predicates,
        ofColumns.schema,
        ofColumns.scan,
        token,
        keys,
        otherSplits,
        rows,
        bytes,
        description,
        details,
        ordering,
        ofColumns.filterColumns,
        partitionColumns,
        packing,
        packedSplits,
        otherIsPacked,
        otherKeys,
        decided,
        filtered,
        planning);
  }

  /** Whether partition values, or the leaves' filters, evaluate a predicate for all rows. */
  boolean isEvaluated(String predicate) {
    return decided.contains(predicate) || filtered.contains(predicate);
  }

  /** The columns by which Spark may filter while the query runs. */
  NamedReference[] filterAttributes() {
    return filterColumns.stream()
        .map(name -> Expressions.column(SparkTransforms.quoted(name)))
        .toArray(NamedReference[]::new);
  }

  /** The splits that are left under predicates that the query found while it ran. */
  List<PennonSplit> splitsUnder(List<String> runtimePredicates) {
    if (runtimePredicates.contains("FALSE")) {
      return List.of();
    }
    if (isPacked) {
      return packedUnder(table, token, packing, runtimePredicates);
    }
    ObjectNode request = table.catalogRequest("prune_splits").put("plan", token);
    request.set("predicates", Messages.strings(runtimePredicates));
    JsonNode reply = WorkerConnection.answer(request);
    Set<String> possible = Set.of(Messages.toStrings(Messages.field(reply, "PruneSplitsReply", "object_ids")));
    return splits.list().stream().flatMap(split -> split.under(possible).stream()).toList();
  }

  /** Two scans with the same identity give the same rows, so Spark may run one for both. */
  Identity identity() {
    return new Identity(table.catalog(), table.token(), predicates, schema, derivedKeys);
  }

  /** Tokens may hold storage options: they are never shown. */
  @Override
  public String toString() {
    return "ScanPlan[" + table.name() + "]";
  }

  record Identity(
      String catalog,
      String token,
      List<String> predicates,
      StructType schema,
      KeyedLeaves derivedKeys) {}
}
