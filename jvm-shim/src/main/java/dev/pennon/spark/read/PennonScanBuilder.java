package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.catalog.TableHandle;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerConnection;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** Collects what Spark pushes down and has the worker plan the scan, once. */
public final class PennonScanBuilder
    implements SupportsPushDownV2Filters, SupportsPushDownRequiredColumns {
  private static final Set<String> NULL_TESTS = Set.of("IS_NULL", "IS_NOT_NULL");

  private final TableHandle table;
  private final boolean isOfRowChange;
  private final List<String> sent = new ArrayList<>();
  private final List<Predicate> pushed = new ArrayList<>();
  private StructType schema;
  private PennonScan scan;

  public PennonScanBuilder(TableHandle table) {
    this(table, false);
  }

  private PennonScanBuilder(TableHandle table, boolean isOfRowChange) {
    this.table = table;
    this.isOfRowChange = isOfRowChange;
    this.schema = table.schema();
  }

  /** The scan of a statement that changes the rows which it gives. */
  public static PennonScanBuilder ofRowChange(TableHandle table) {
    return new PennonScanBuilder(table, true);
  }

  /**
   * Sends every predicate that can be written. Spark is spared only the tests for NULL that the
   * worker makes exactly as Spark does: a filter that is left in the plan is how Spark knows that
   * this side of a join is selective, and prunes the other side's partitions by it while running.
   */
  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    PredicateText text = PredicateText.ofSession(table.schema());
    List<Predicate> written = new ArrayList<>();
    List<String> texts = new ArrayList<>();
    List<Predicate> residual = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Optional<String> sql = text.write(predicate);
      if (sql.isPresent()) {
        written.add(predicate);
        texts.add(sql.get());
      } else {
        residual.add(predicate);
      }
    }
    JsonNode accepted = texts.isEmpty() ? Messages.array() : accepted(texts);
    for (int i = 0; i < written.size(); i++) {
      if (!accepted.path(i).asBoolean() || !NULL_TESTS.contains(written.get(i).name())) {
        residual.add(written.get(i));
      }
    }
    sent.addAll(texts);
    pushed.addAll(written);
    return residual.toArray(Predicate[]::new);
  }

  private JsonNode accepted(List<String> texts) {
    ObjectNode request = table.request("push_predicates");
    request.set("predicates", Messages.strings(texts.toArray(String[]::new)));
    try {
      return Messages.field(
          WorkerConnection.exchange(request), "PushPredicatesReply", "accepted");
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  @Override
  public Predicate[] pushedPredicates() {
    return pushed.toArray(Predicate[]::new);
  }

  @Override
  public void pruneColumns(StructType requiredSchema) {
    schema = requiredSchema;
  }

  /** The predicates of the scan that was built; nothing where Spark had no use for one. */
  public Optional<String[]> builtWith() {
    return scan == null ? Optional.empty() : Optional.of(sent.toArray(String[]::new));
  }

  @Override
  public Scan build() {
    if (scan == null) {
      scan = new PennonScan(ScanPlan.request(table, sent, schema, isOfRowChange));
    }
    return scan;
  }
}
