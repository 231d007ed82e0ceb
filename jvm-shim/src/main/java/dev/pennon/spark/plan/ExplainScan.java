package dev.pennon.spark.plan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.read.PennonScan;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * {@code CALL catalog.system.explain_scan('SELECT …')}: which partitions each scan of a query reads,
 * and what each of its conditions prunes.
 */
final class ExplainScan {
  static final List<String> COLUMNS = List.of("table", "item", "description");

  private ExplainScan() {}

  static Stream<Stream<String>> explain(Supplier<SparkPlan> planning) {
    List<PennonScan> scans = new ArrayList<>();
    PennonScan.listening(scans::add, planning);
    return scans.isEmpty()
        ? Stream.of(Stream.of("", "scans", "none: the rows are known, cached or searched, as EXPLAIN shows"))
        : scans.stream().map(PennonScan::outline).flatMap(ExplainScan::report);
  }

  private static Stream<Stream<String>> report(ObjectNode outline) {
    ObjectNode request = Messages.request("explain_scan");
    request.set("catalog", outline.get("catalog"));
    request.set("plan", outline.get("plan"));
    return Replies.answer(request, ExplainScanReply.class).rows().stream()
        .map(row -> Stream.of(outline.get("table").asText(), row.get(0), row.get(1)));
  }

  private record ExplainScanReply(List<List<String>> rows) {}
}
