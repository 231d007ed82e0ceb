package dev.pennon.spark.catalog;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.read.MetadataScan;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.replies.TableHandle;
import dev.pennon.spark.tables.TableReply;
import dev.pennon.spark.worker.Messages;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code FROM t CHANGES FROM VERSION 3 TO VERSION 9} (Spark 4.2 and later): what commits did to the
 * rows. The worker has paired updates and left out what is not wanted, so Spark has nothing to do.
 *
 * @param handle the changes, pinned to their versions
 */
record ChangeFeed(TableHandle handle) implements Changelog {
  static Changelog load(
      CatalogConnection worker,
      Identifier identifier,
      ChangelogContext context,
      CaseInsensitiveStringMap options) {
    ObjectNode request = worker.request("load_changes", identifier);
    List.of("start_version", "end_version", "start_micros", "end_micros").forEach(request::putNull);
    ChangelogRange range = context.range();
    if (range instanceof ChangelogRange.VersionRange versions) {
      request.put("start_version", versions.startingVersion());
      request.put("end_version", versions.endingVersion().orElse(null));
    } else if (range instanceof ChangelogRange.TimestampRange times) {
      request.put("start_micros", times.startingTimestamp());
      request.put("end_micros", times.endingTimestamp().orElse(null));
    }
    request.put("start_inclusive", range.startingBoundInclusive());
    request.put("end_inclusive", range.endingBoundInclusive());
    request.put("compute_updates", context.computeUpdates());
    request.put("deduplication", context.deduplicationMode().value());
    request.set("options", Messages.strings(options.asCaseSensitiveMap()));
    return new ChangeFeed(Replies.answer(request, TableReply.class).handle(worker.described()));
  }

  @Override
  public String name() {
    return handle.name();
  }

  @Override
  public Column[] columns() {
    return Stream.of(handle.schema().fields())
        .map(field -> Column.create(field.name(), field.dataType(), field.nullable()))
        .toArray(Column[]::new);
  }

  @Override
  public boolean containsCarryoverRows() {
    return false;
  }

  @Override
  public boolean containsIntermediateChanges() {
    return false;
  }

  @Override
  public boolean representsUpdateAsDeleteAndInsert() {
    return false;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new MetadataScan.Builder(handle);
  }
}
