package dev.pennon.spark.catalog;

import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A table that a query fills before it has a name: it gets the name, or it is deleted. */
final class StagedPennonTable extends PennonTable implements StagedTable {
  private final Runnable publish;
  private final Runnable discard;

  StagedPennonTable(PennonTable table, Runnable publish, Runnable discard) {
    super(table);
    this.publish = publish;
    this.discard = discard;
  }

  @Override
  public void commitStagedChanges() {
    publish.run();
  }

  /** Two of Spark's interfaces have it. */
  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  @Override
  public void abortStagedChanges() {
    discard.run();
  }
}
