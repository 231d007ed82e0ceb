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
import java.util.LinkedHashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
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
 * @param ordering the order that each split's rows can be read in; empty when none is known
 * @param derivedKeys what stands under each key when the scan gives its derived key as last column;
 *     null when it does not
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
    List<SortOrder> ordering,
    KeyedLeaves derivedKeys) {
  /** Key of the split that stands for none; any value is right, for it has no rows. */
  private static final long NO_SPLITS_KEY = 0;

  /** Asks the worker for the plan; planning reads the manifest and opens no leaf. */
  static ScanPlan request(TableHandle table, List<String> predicates, StructType schema) {
    ObjectNode request = table.request("plan_scan");
    request.set("predicates", Messages.strings(predicates.toArray(String[]::new)));
    request.set("schema", Messages.parse(schema.json()));
    try {
      return of(table, predicates, schema, WorkerConnection.exchange(request));
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
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
      JsonNode reply) {
    List<Transform> keys = List.of(SparkTransforms.fromJson(reply.path("keys")));
    int size = reply.path("splits").asInt();
    Splits splits;
    if (size > 0) {
      ObjectNode request = table.request("list_splits").put("plan", reply.path("plan").asText());
      request.set("schema", Messages.parse(schema.json()));
      splits = Splits.later(size, () -> askForSplits(request));
    } else if (keys.isEmpty()) {
      splits = Splits.of(List.of());
    } else {
      splits = Splits.of(List.of(PennonSplit.empty(new GenericInternalRow(keys.size()))));
    }
    return new ScanPlan(
        table,
        List.copyOf(predicates),
        schema,
        reply.path("scan").asText(),
        reply.path("plan").asText(),
        keys,
        splits,
        optional(reply.path("rows")),
        optional(reply.path("bytes")),
        reply.path("description").asText(),
        SortOrders.fromJson(reply.path("ordering")),
        null);
  }

  /** This plan with one more column: a key that is constant over each split (design §5). */
  ScanPlan withDerivedKeys(KeyedLeaves keyedLeaves) {
    return with(Splits.later(() -> keyed(splits.list(), keyedLeaves)), keyedLeaves);
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
  ScanPlan packed(int numTasks, long maxBytes) {
    ObjectNode request = table.request("pack_splits").put("plan", token);
    request.put("num_tasks", numTasks).put("max_bytes", maxBytes);
    return with(Splits.later(() -> askForSplits(request)), null);
  }

  private ScanPlan with(Splits otherSplits, KeyedLeaves otherKeys) {
    return new ScanPlan(
        table,
        predicates,
        schema,
        scan,
        token,
        keys,
        otherSplits,
        rows,
        bytes,
        description,
        ordering,
        otherKeys);
  }

  private static OptionalLong optional(JsonNode number) {
    return number.isNumber() ? OptionalLong.of(number.asLong()) : OptionalLong.empty();
  }

  /** Top-level columns of the output whose values can drop splits while the query runs. */
  NamedReference[] filterColumns() {
    Set<String> output = new LinkedHashSet<>(List.of(schema.fieldNames()));
    Set<String> seen = new LinkedHashSet<>();
    return keys.stream()
        .flatMap(key -> Stream.of(key.references()))
        .filter(column -> column.fieldNames().length == 1)
        .filter(column -> output.contains(column.fieldNames()[0]))
        .filter(column -> seen.add(column.fieldNames()[0]))
        .toArray(NamedReference[]::new);
  }

  /** The partitions that can still hold rows when these predicates hold, too. */
  Set<String> objectsPossibleUnder(List<String> runtimePredicates) {
    ObjectNode request = table.request("prune_splits");
    String[] all = Stream.concat(predicates.stream(), runtimePredicates.stream())
        .toArray(String[]::new);
    request.set("predicates", Messages.strings(all));
    try {
      JsonNode reply = WorkerConnection.exchange(request);
      return Set.of(Messages.toStrings(reply.path("object_ids")));
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
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
