package dev.pennon.spark.functions;

import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;

/**
 * A transform bound to the types of its arguments.
 *
 * <p>The canonical name holds everything that changes a value and is Pennon's own: Spark joins two
 * tables partition by partition when the names of their functions are equal.
 */
abstract class PennonFunction<R> implements ScalarFunction<R> {
  private static final long serialVersionUID = 1L;

  private final String canonicalName;
  private final DataType[] inputTypes;
  private final DataType resultType;

  PennonFunction(String canonicalName, DataType resultType, DataType... inputTypes) {
    this.canonicalName = canonicalName;
    this.resultType = resultType;
    this.inputTypes = inputTypes;
  }

  /** The type of the column that is transformed: the last argument. */
  DataType sourceType() {
    return inputTypes[inputTypes.length - 1];
  }

  @Override
  public String name() {
    return canonicalName;
  }

  @Override
  public String canonicalName() {
    return canonicalName;
  }

  @Override
  public DataType[] inputTypes() {
    return inputTypes.clone();
  }

  @Override
  public DataType resultType() {
    return resultType;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PennonFunction<?> function
        && canonicalName.equals(function.canonicalName);
  }

  @Override
  public int hashCode() {
    return canonicalName.hashCode();
  }

  @Override
  public String toString() {
    return canonicalName;
  }
}
