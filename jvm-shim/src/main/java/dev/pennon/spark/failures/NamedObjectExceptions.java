package dev.pennon.spark.failures;

import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;

/**
 * The exceptions that Spark acts upon, with the worker's message instead of Spark's.
 *
 * <p>Spark catches them by class, for IF EXISTS and IF NOT EXISTS; a user who sees one reads which
 * names are near.
 */
final class NamedObjectExceptions {
  private NamedObjectExceptions() {}

  /** The exception that Spark has for the condition, or null. */
  static AnalysisException of(WorkerFailure failure) {
    // What servers and logs show: the classes below have no names.
    String shown = AnalysisException.class.getName() + ": " + failure.getMessage();
    return switch (failure.condition()) {
      case "TABLE_NOT_FOUND" -> new NoSuchTableException(tableOf(failure)) {
        @Override
        public String message() {
          return failure.getMessage();
        }

        @Override
        public String toString() {
          return shown;
        }
      };
      case "NAMESPACE_NOT_FOUND" -> new NoSuchNamespaceException(namespaceOf(failure)) {
        @Override
        public String message() {
          return failure.getMessage();
        }

        @Override
        public String toString() {
          return shown;
        }
      };
      case "TABLE_ALREADY_EXISTS" -> new TableAlreadyExistsException(tableOf(failure)) {
        @Override
        public String message() {
          return failure.getMessage();
        }

        @Override
        public String toString() {
          return shown;
        }
      };
      case "NAMESPACE_ALREADY_EXISTS" -> new NamespaceAlreadyExistsException(namespaceOf(failure)) {
        @Override
        public String message() {
          return failure.getMessage();
        }

        @Override
        public String toString() {
          return shown;
        }
      };
      default -> null;
    };
  }

  // Spark's own text is made of these names; it is not shown.

  private static Identifier tableOf(WorkerFailure failure) {
    return Identifier.of(new String[0], failure.parameters().getOrDefault("table", ""));
  }

  private static String[] namespaceOf(WorkerFailure failure) {
    return new String[] {failure.parameters().getOrDefault("namespace", "")};
  }
}
