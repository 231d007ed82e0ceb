package dev.pennon.spark.functions;

import java.io.Serializable;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * From a finer partition value to a coarser one, so that two tables meet in it.
 *
 * <p>Records, because Spark compares them; NULL stays NULL.
 */
final class Reducers {
  private Reducers() {}

  /** Bucket numbers to those of a divisor of their count. */
  record Modulo(int divisor) implements Reducer<Integer, Integer>, Serializable {
    @Override
    public Integer reduce(Integer bucket) {
      return bucket == null ? null : bucket % divisor;
    }

    @Override
    public DataType resultType() {
      return DataTypes.IntegerType;
    }

    @Override
    public String displayName() {
      return "bucket of " + divisor;
    }
  }

  /** Hours to days, days to months, months to years. */
  record Coarsen(TimePart from, TimePart to) implements Reducer<Integer, Integer>, Serializable {
    @Override
    public Integer reduce(Integer value) {
      return value == null ? null : to.coarsened(value, from);
    }

    @Override
    public DataType resultType() {
      return DataTypes.IntegerType;
    }

    @Override
    public String displayName() {
      return from.functionName() + " to " + to.functionName();
    }
  }

  /** Truncated values to those of a coarser width. */
  record Truncated(int width, DataType type) implements Reducer<Object, Object>, Serializable {
    @Override
    public Object reduce(Object value) {
      return value == null ? null : Truncate.truncated(value, width);
    }

    @Override
    public DataType resultType() {
      return type;
    }

    @Override
    public String displayName() {
      return "truncate by " + width;
    }
  }
}
