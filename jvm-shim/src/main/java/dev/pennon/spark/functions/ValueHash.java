package dev.pennon.spark.functions;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/** The Murmur3 hash of a value in Spark's internal form, by the byte forms of {@link Bucket}. */
final class ValueHash {
  private ValueHash() {}

  /** Hashes a value that is not null, starting with a seed. */
  static int of(Object value, int seed) {
    if (value instanceof UTF8String text) {
      return ofBytes(text.getBaseObject(), text.getBaseOffset(), text.numBytes(), seed);
    }
    if (value instanceof byte[] bytes) {
      return ofBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, seed);
    }
    if (value instanceof Decimal decimal) {
      byte[] unscaled = decimal.toJavaBigDecimal().unscaledValue().toByteArray();
      return ofBytes(unscaled, Platform.BYTE_ARRAY_OFFSET, unscaled.length, seed);
    }
    if (value instanceof Boolean flag) {
      return ofLong(flag ? 1 : 0, seed);
    }
    return ofLong(((Number) value).longValue(), seed);
  }

  static int ofLong(long value, int seed) {
    return Murmur3_x86_32.hashLong(value, seed);
  }

  private static int ofBytes(Object base, long offset, int length, int seed) {
    return Murmur3_x86_32.hashUnsafeBytes2(base, offset, length, seed);
  }
}
