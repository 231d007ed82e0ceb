package dev.pennon.spark.tables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.WorkerConnection;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A table that a query fills before it has a name: it gets the name, or it is deleted. */
public final class StagedPennonTable extends PennonTable implements StagedTable {
  private final Function<String, ObjectNode> request;
  private final String mode;
  private final ArrayNode reads = Messages.array();

  public StagedPennonTable(PennonTable table, Function<String, ObjectNode> request, String mode) {
    super(table);
    this.request = request;
    this.mode = mode;
  }

  /** Notes a table that the query reads: it may be the one whose name this one gets. */
  public void fillFrom(PennonTable read) {
    reads.add(read.handle().token().text());
  }

  @Override
  public void commitStagedChanges() {
    ObjectNode publish = request.apply("publish_table").put("mode", mode);
    WorkerConnection.answer(publish.set("reads", reads));
  }

  /** Two of Spark's interfaces have it. */
  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  @Override
  public void abortStagedChanges() {
    WorkerConnection.answer(request.apply("discard_table"));
  }
}
