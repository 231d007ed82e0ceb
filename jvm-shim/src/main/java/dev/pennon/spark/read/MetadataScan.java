package dev.pennon.spark.read;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.expressions.ExpressionText;
import dev.pennon.spark.replies.TableHandle;
import dev.pennon.spark.tasks.ArrowPartitionReaders;
import dev.pennon.spark.tasks.PennonSplit;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The rows of a metadata table, in one task.
 *
 * @param table the metadata table
 * @param readSchema the columns that are read
 * @param predicates what the worker may leave rows out by; Spark evaluates it all the same
 */
public record MetadataScan(TableHandle table, StructType readSchema, List<String> predicates)
    implements ColumnarBatchScan {

  @Override
  public String description() {
    return table.name() + (predicates.isEmpty() ? "" : "; predicates: " + predicates);
  }

  @Override
  public InputPartition[] planInputPartitions() {
    ObjectNode requested = Messages.object();
    requested.set("catalog", table.catalog().json());
    requested.set("columns", Messages.strings(readSchema.fieldNames()));
    requested.set("predicates", Messages.strings(predicates));
    GenericInternalRow noKey = new GenericInternalRow(0);
    return new InputPartition[] {
      new PennonSplit(table.name(), new SecretText(Messages.print(requested)), noKey)
    };
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ArrowPartitionReaders(
        ArrowPartitionReaders.Source.metadata(table.token()), readSchema, false);
  }

  /** Takes what Spark pushes down; leaves every predicate to it as well. */
  public static final class Builder
      implements SupportsPushDownCatalystFilters, SupportsPushDownRequiredColumns {
    private final TableHandle table;
    private final List<String> predicates = new ArrayList<>();
    private StructType schema;

    public Builder(TableHandle table) {
      this.table = table;
      this.schema = table.schema();
    }

    @Override
    public Seq<Expression> pushFilters(Seq<Expression> filters) {
      Set<String> names = Set.of(table.schema().fieldNames());
      items(filters).stream()
          .map(filter -> ExpressionText.ofTable(filter, names))
          .filter(Objects::nonNull)
          .forEach(predicates::add);
      return filters;
    }

    @Override
    public Predicate[] pushedFilters() {
      return new Predicate[0];
    }

    /** Whole columns: a struct comes with all its fields. */
    @Override
    public void pruneColumns(StructType requiredSchema) {
      Set<String> requested = Set.of(requiredSchema.fieldNames());
      schema = new StructType();
      for (StructField column : table.schema().fields()) {
        schema = requested.contains(column.name()) ? schema.add(column) : schema;
      }
    }

    @Override
    public Scan build() {
      return new MetadataScan(table, schema, List.copyOf(predicates));
    }
  }
}
