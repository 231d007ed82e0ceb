package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;

/** Spark's sort orders from the JSON of the messages: transforms, each with its direction. */
public final class SortOrders {
  private SortOrders() {}

  /** Reads a list of sort orders; ascending, NULLs first, where nothing else is said. */
  public static List<SortOrder> fromJson(JsonNode list) {
    List<SortOrder> orders = new ArrayList<>();
    for (JsonNode json : list) {
      boolean isDescending = json.path("desc").asBoolean(false);
      boolean nullsFirst = json.path("nulls_first").asBoolean(true);
      orders.add(
          Expressions.sort(
              SparkTransforms.transformFromJson(json),
              isDescending ? SortDirection.DESCENDING : SortDirection.ASCENDING,
              nullsFirst ? NullOrdering.NULLS_FIRST : NullOrdering.NULLS_LAST));
    }
    return List.copyOf(orders);
  }
}
