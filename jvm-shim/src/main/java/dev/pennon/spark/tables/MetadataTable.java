package dev.pennon.spark.tables;

import dev.pennon.spark.read.MetadataScan;
import dev.pennon.spark.replies.TableHandle;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What a table's metadata tells, as a table: {@code lance.shop.orders.partitions}. Which there are
 * and what stands in them is the worker's to say.
 *
 * @param handle the metadata table, pinned to a version of the table
 */
public record MetadataTable(TableHandle handle) implements SupportsRead {
  @Override
  public String name() {
    return handle.name();
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    return handle.schema();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new MetadataScan.Builder(handle);
  }
}
