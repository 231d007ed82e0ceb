package dev.pennon.spark.functions;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The derived key of a row, for the side of a join that has no partitioning: a never-null hash of
 * the values of some functions of the row's columns.
 *
 * <p>The definition is that of the worker, which computes the other side's keys: starting with 0,
 * {@code key = key * 1000003 + h}, where h is the Murmur3 hash of the value, or 2^32 for null.
 */
public final class Surrogate extends PennonFunction<Long> {
  private static final long serialVersionUID = 1L;
  private static final long FACTOR = 1_000_003L;
  private static final long NULL_HASH = 1L << 32;

  /**
   * One function of the key.
   *
   * @param name a transform that Spark knows, {@code identity} or {@code multi_bucket}
   * @param numBuckets the number of buckets, where the function has one
   * @param types the types of its columns
   */
  public record Component(String name, int numBuckets, List<DataType> types)
      implements Serializable {
    /** The bound function of one column, or null where the value is computed here. */
    private ScalarFunction<?> bound() {
      if (name.equals("identity") || name.equals("multi_bucket")) {
        return null;
      }
      StructType input = new StructType();
      if (name.equals("bucket")) {
        input = input.add("num_buckets", DataTypes.IntegerType);
      }
      BoundFunction function =
          Transforms.find(name).orElseThrow().bind(input.add("column", types.get(0)));
      return (ScalarFunction<?>) function;
    }
  }

  private final List<Component> components;
  private final List<ScalarFunction<?>> functions = new ArrayList<>();

  public Surrogate(List<Component> components) {
    super(
        "pennon.surrogate" + components,
        DataTypes.LongType,
        components.stream().flatMap(c -> c.types().stream()).toArray(DataType[]::new));
    this.components = List.copyOf(components);
    this.components.forEach(component -> functions.add(component.bound()));
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  @Override
  public Long produceResult(InternalRow row) {
    long key = 0;
    int column = 0;
    for (int i = 0; i < components.size(); i++) {
      Component component = components.get(i);
      Object value = value(component, functions.get(i), row, column);
      key = key * FACTOR + (value == null ? NULL_HASH : ValueHash.of(value, 0));
      column += component.types().size();
    }
    return key;
  }

  private static Object value(
      Component component, ScalarFunction<?> function, InternalRow row, int column) {
    if (component.name().equals("multi_bucket")) {
      return multiBucket(component, row, column);
    }
    DataType type = component.types().get(0);
    Object source = row.isNullAt(column) ? null : row.get(column, type);
    if (function == null || source == null) {
      return source;
    }
    Object[] arguments =
        component.name().equals("bucket")
            ? new Object[] {component.numBuckets(), source}
            : new Object[] {source};
    return function.produceResult(new GenericInternalRow(arguments));
  }

  /** The hash of each column that is not null is the seed of the next. */
  private static Integer multiBucket(Component component, InternalRow row, int column) {
    Integer hash = null;
    for (int i = 0; i < component.types().size(); i++) {
      if (!row.isNullAt(column + i)) {
        Object value = row.get(column + i, component.types().get(i));
        hash = ValueHash.of(value, hash == null ? 0 : hash);
      }
    }
    return hash == null ? null : Bucket.ofHash(component.numBuckets(), hash);
  }
}
