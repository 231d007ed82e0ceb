package dev.pennon.spark.failures;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Makes Spark's exception for user errors with a message that is not in Spark's own catalogue. */
public final class AnalysisExceptions {
  private AnalysisExceptions() {}

  /** The message as it stands, with condition, parameters and SQL state where Spark has them. */
  public static AnalysisException of(WorkerFailure failure) {
    AnalysisException ofSpark = NamedObjectExceptions.of(failure);
    if (ofSpark != null) {
      return ofSpark;
    }
    Option<Object> nowhere = Option.empty();
    Option<Throwable> cause = Option.apply(failure);
    Map<String, String> parameters = new HashMap<>(failure.parameters());
    return new AnalysisException(
        failure.getMessage(),
        nowhere,
        nowhere,
        cause,
        Option.apply(failure.condition()),
        scala.collection.immutable.Map.from(CollectionConverters.asScala(parameters)),
        new QueryContext[0],
        Option.apply(failure.sqlState()),
        Option.apply(failure.getMessage())) {
      // With a place in the query PySpark looks the message up among Spark's own.
      @Override
      public AnalysisException withPosition(Origin origin) {
        return this;
      }

      @Override
      public String toString() {
        return AnalysisException.class.getName() + ": " + failure.getMessage();
      }
    };
  }
}
