package dev.pennon.spark.compat;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;

/** Spark's Arrow schema of rows: the method has one flag more since Spark 4.3. */
public final class ArrowSchemas {
  private static final String UTC = "UTC";

  private ArrowSchemas() {}

  /** The schema with timestamps in UTC; equal field names are refused, offsets have 32 bits. */
  public static Schema of(StructType schema) {
    try {
      return ArrowUtils.toArrowSchema(schema, UTC, true, false, false);
    } catch (NoSuchMethodError beforeSpark43) {
      return withFourParameters(schema);
    }
  }

  private static Schema withFourParameters(StructType schema) {
    MethodType type =
        MethodType.methodType(
            Schema.class, StructType.class, String.class, boolean.class, boolean.class);
    try {
      MethodHandle method =
          MethodHandles.publicLookup().findStatic(ArrowUtils.class, "toArrowSchema", type);
      return (Schema) method.invokeExact(schema, UTC, true, false);
    } catch (RuntimeException | Error thrownBySpark) {
      throw thrownBySpark;
    } catch (Throwable notThere) {
      throw new IllegalStateException("Spark has no ArrowUtils.toArrowSchema that is known", notThere);
    }
  }
}
