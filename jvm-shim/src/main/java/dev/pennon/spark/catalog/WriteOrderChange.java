package dev.pennon.spark.catalog;

import org.apache.spark.sql.connector.catalog.TableChange;

/**
 * WRITE ORDERED BY or WRITE UNORDERED, as a change that Spark hands to the catalog.
 *
 * @param order the columns with their directions, as text; null for UNORDERED
 */
public record WriteOrderChange(String order) implements TableChange {
  /** The table property that the statement stands for. */
  TableChange ofProperty() {
    return order == null
        ? TableChange.removeProperty("write.order")
        : TableChange.setProperty("write.order", order);
  }

  @Override
  public String toString() {
    return "change the write order";
  }
}
