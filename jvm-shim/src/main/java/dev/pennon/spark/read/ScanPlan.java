package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.replies.TableHandle;
import dev.pennon.spark.tasks.KeyedLeaf;
import dev.pennon.spark.tasks.Metric;
import dev.pennon.spark.tasks.PennonSplit;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/**
 * What the worker planned for one scan.
 *
 * @param table the table, pinned to a snapshot
 * @param predicates every predicate that the worker was given
 * @param schema the columns that the scan gives
 * @param reply the worker's answer
 * @param ofColumns its answer about these columns, where they became fewer afterwards
 * @param packing how the leaves are packed where nothing groups by them
 * @param splits the work, never empty when there are keys
 * @param packedSplits the work when leaves are packed
 * @param derivedKeys what stands under each key when the scan gives its derived key as last column;
 *     null when it does not
 * @param planning what planning chose from, and how long it took
 */
record ScanPlan(
    TableHandle table,
    List<String> predicates,
    StructType schema,
    PlanScanReply reply,
    PlanScanReply ofColumns,
    Packing packing,
    Splits splits,
    Splits packedSplits,
    List<KeyedLeaf> derivedKeys,
    Metric.Planning planning) {
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
   * @param fullyPushed the positions of predicates that nobody but the worker evaluates
   * @param options those of the reader
   */
  static ScanPlan request(
      TableHandle table,
      List<String> predicates,
      List<Integer> fullyPushed,
      StructType schema,
      Map<String, String> options,
      boolean isOfRowChange) {
    Packing packing = Packing.ofSession();
    ObjectNode request = packing.addTo(table.request("plan_scan"));
    request.put("row_change", isOfRowChange);
    request.put("time_zone", SQLConf.get().sessionLocalTimeZone());
    request.set("predicates", Messages.strings(predicates));
    fullyPushed.forEach(request.putArray("fully_pushed")::add);
    request.set("options", Messages.strings(options));
    request.set("schema", Messages.parse(schema.json()));
    long begun = System.nanoTime();
    PlanScanReply reply = Replies.answer(request, PlanScanReply.class);
    long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
    return new ScanPlan(
        table,
        List.copyOf(predicates),
        schema,
        reply,
        reply,
        packing,
        splits(table, schema, reply),
        packed(table, packing, reply),
        null,
        new Metric.Planning(reply.partitionsTotal(), millis));
  }

  private static Splits splits(TableHandle table, StructType schema, PlanScanReply reply) {
    if (reply.splits() == 0) {
      InternalRow noKey = new GenericInternalRow(reply.keys().size());
      return Splits.of(reply.keys().isEmpty() ? List.of() : List.of(PennonSplit.empty(noKey)));
    }
    ObjectNode request = table.catalogRequest("list_splits").put("plan", reply.plan());
    request.set("schema", Messages.parse(schema.json()));
    return Splits.later(reply.splits(), () -> Splits.ask(request));
  }

  /** The packed splits: those of few leaves come with the plan, others when they are needed. */
  private static Splits packed(TableHandle table, Packing packing, PlanScanReply reply) {
    return reply.packed() == null
        ? Splits.later(() -> packedUnder(table, reply, packing, RuntimeFilters.NONE))
        : Splits.of(reply.packed().stream().map(PennonSplit::packed).toList());
  }

  private static List<PennonSplit> packedUnder(
      TableHandle table, PlanScanReply reply, Packing packing, RuntimeFilters filters) {
    ObjectNode request = table.catalogRequest("pack_splits").put("plan", reply.plan());
    return Splits.ask(filters.addTo(packing.addTo(request)));
  }

  /** This plan with fewer columns: the same splits, read without the others. */
  ScanPlan narrowed(StructType narrower) {
    ScanPlan narrowed = request(table, predicates, List.of(), narrower, Map.of(), false);
    return with(narrower, narrowed.reply, splits, derivedKeys);
  }

  /** This plan with one more column: a key that is constant over each split. */
  ScanPlan withDerivedKeys(List<KeyedLeaf> keyedLeaves) {
    Splits keyed = Splits.later(() -> keyed(splits.list(), keyedLeaves));
    return with(schema, ofColumns, keyed, keyedLeaves);
  }

  private static List<PennonSplit> keyed(List<PennonSplit> leaves, List<KeyedLeaf> keyedLeaves) {
    Map<Long, List<PennonSplit>> byKey = new LinkedHashMap<>();
    for (KeyedLeaf keyed : keyedLeaves) {
      List<PennonSplit> ofKey = byKey.computeIfAbsent(keyed.key(), key -> new ArrayList<>());
      if (keyed.leaf() >= 0) {
        PennonSplit leaf = leaves.get(keyed.leaf());
        ofKey.add(keyed.split() == null ? leaf : leaf.part(keyed.split()));
      }
    }
    if (byKey.isEmpty()) {
      byKey.put(NO_SPLITS_KEY, List.of());
    }
    return byKey.entrySet().stream()
        .map(ofKey -> PennonSplit.together(ofKey.getValue(), PennonSplit.keyRow(ofKey.getKey())))
        .toList();
  }

  /** This plan without keys, its leaves packed into as many splits as it pays to read at once. */
  ScanPlan packed() {
    return with(schema, ofColumns, packedSplits, null);
  }

  boolean isPacked() {
    return splits == packedSplits;
  }

  private ScanPlan with(
      StructType columns, PlanScanReply answer, Splits work, List<KeyedLeaf> keyedLeaves) {
    return new ScanPlan(
        table, predicates, columns, reply, answer, packing, work, packedSplits, keyedLeaves, planning);
  }

  /** Whether partition values decide a predicate for all rows. */
  boolean isDecided(String predicate) {
    return reply.guaranteedByPartitions().stream().anyMatch(at -> predicates.get(at).equals(predicate));
  }

  /** Whether partition values, or the leaves' filters, evaluate a predicate for all rows. */
  boolean isEvaluated(String predicate) {
    return isDecided(predicate)
        || reply.evaluatedInScan().stream().anyMatch(at -> predicates.get(at).equals(predicate));
  }

  /** The columns by which Spark may filter while the query runs. */
  NamedReference[] filterAttributes() {
    return ofColumns.filterColumns().stream()
        .map(name -> Expressions.column(Columns.quoted(name)))
        .toArray(NamedReference[]::new);
  }

  /** The splits that can have rows under filters that the query found while it ran. */
  List<PennonSplit> splitsUnder(RuntimeFilters filters) {
    if (isPacked()) {
      return packedUnder(table, reply, packing, filters);
    }
    ObjectNode request = table.catalogRequest("prune_splits").put("plan", reply.plan());
    Set<String> possible =
        Replies.answer(filters.addTo(request), PruneSplitsReply.class).objectIds();
    return splits.list().stream().flatMap(split -> split.under(possible).stream()).toList();
  }

  private record PruneSplitsReply(Set<String> objectIds) {}

  /** Two scans with the same identity give the same rows, so Spark may run one for both. */
  Identity identity() {
    return new Identity(table.catalog(), table.token(), predicates, schema, derivedKeys);
  }

  record Identity(
      SecretText catalog,
      SecretText token,
      List<String> predicates,
      StructType schema,
      List<KeyedLeaf> derivedKeys) {}
}
