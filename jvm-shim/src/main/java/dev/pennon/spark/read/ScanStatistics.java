package dev.pennon.spark.read;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.worker.Messages;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.catalyst.catalog.CatalogColumnStat;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** What Spark's planner wants to know of a scan, where it is known. */
public record ScanStatistics(
    OptionalLong numRows, OptionalLong sizeInBytes, Map<NamedReference, ColumnStatistics> columnStats)
    implements Statistics {
  /** Statistics of the whole alone. */
  public ScanStatistics(OptionalLong numRows, OptionalLong sizeInBytes) {
    this(numRows, sizeInBytes, Map.of());
  }

  /** Of a column; bounds are values of Spark's internal form. */
  private record OfColumn(
      OptionalLong distinctCount, Optional<Object> min, Optional<Object> max, OptionalLong nullCount)
      implements ColumnStatistics {}

  /** Whether the session's optimizer estimates by columns; else nobody reads what is known of them. */
  static boolean areColumnsAsked() {
    SQLConf conf = SQLConf.get();
    return conf.cboEnabled() || conf.planStatsEnabled();
  }

  /** Asks the worker about the rows of a scan and their columns; of sizes it tells nothing. */
  static ScanStatistics ofColumns(ScanPlan plan) {
    StructType schema = plan.schema();
    ObjectNode request = plan.table().catalogRequest("summarize_columns").put("plan", plan.reply().plan());
    request.set("columns", Messages.strings(schema.fieldNames()));
    Map<NamedReference, ColumnStatistics> known = new HashMap<>();
    SummarizeColumnsReply reply = Replies.answer(request, SummarizeColumnsReply.class);
    for (ColumnSummaryText column : reply.columns()) {
      String name = column.name();
      DataType type = schema.apply(name).dataType();
      known.put(
          Expressions.column(Columns.quoted(name)),
          new OfColumn(
              column.distinctCount(),
              bound(column.lower(), name, type),
              bound(column.upper(), name, type),
              column.nullCount()));
    }
    return new ScanStatistics(reply.rows(), OptionalLong.empty(), known);
  }

  private record SummarizeColumnsReply(List<ColumnSummaryText> columns, OptionalLong rows) {}

  private record ColumnSummaryText(
      String name,
      OptionalLong distinctCount,
      OptionalLong nullCount,
      String lower,
      String upper) {}

  private static Optional<Object> bound(String text, String name, DataType type) {
    return Optional.ofNullable(text)
        .map(
            known ->
                CatalogColumnStat.fromExternalString(
                    known, name, type, CatalogColumnStat.VERSION()));
  }
}
