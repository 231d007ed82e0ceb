package dev.pennon.spark.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;

/** {@code bucket(N, column)} of a TIME of any precision: Spark has nanoseconds, and microseconds are hashed. */
public final class TimeBucket extends Bucket {
  private static final long serialVersionUID = 1L;
  private static final long NANOS_PER_MICRO = 1_000;

  TimeBucket(DataType source) {
    super(source, "time");
  }

  /** By its name: Spark before 4.3 has the type unfinished. */
  static boolean isTime(DataType type) {
    return type.typeName().startsWith("time(");
  }

  @Override
  public Integer produceResult(InternalRow row) {
    return row.isNullAt(1) ? null : invoke(row.getInt(0), row.getLong(1));
  }

  public static int invoke(int numBuckets, long nanos) {
    return Bucket.invoke(numBuckets, nanos / NANOS_PER_MICRO);
  }
}
