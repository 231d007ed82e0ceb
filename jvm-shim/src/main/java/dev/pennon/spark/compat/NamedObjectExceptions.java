package dev.pennon.spark.compat;

import dev.pennon.spark.worker.WorkerFailure;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
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
    return switch (failure.condition()) {
      case "TABLE_NOT_FOUND" -> new MissingTable(failure);
      case "NAMESPACE_NOT_FOUND" -> new MissingNamespace(failure);
      case "TABLE_ALREADY_EXISTS" -> new PresentTable(failure);
      case "NAMESPACE_ALREADY_EXISTS" -> new PresentNamespace(failure);
      case "NAMESPACE_NOT_EMPTY" -> new FullNamespace(failure);
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

  private static final class MissingTable extends NoSuchTableException {
    private static final long serialVersionUID = 1L;
    private final String text;

    MissingTable(WorkerFailure failure) {
      super(tableOf(failure));
      text = failure.getMessage();
    }

    @Override
    public String message() {
      return text;
    }
  }

  private static final class MissingNamespace extends NoSuchNamespaceException {
    private static final long serialVersionUID = 1L;
    private final String text;

    MissingNamespace(WorkerFailure failure) {
      super(namespaceOf(failure));
      text = failure.getMessage();
    }

    @Override
    public String message() {
      return text;
    }
  }

  private static final class PresentTable extends TableAlreadyExistsException {
    private static final long serialVersionUID = 1L;
    private final String text;

    PresentTable(WorkerFailure failure) {
      super(tableOf(failure));
      text = failure.getMessage();
    }

    @Override
    public String message() {
      return text;
    }
  }

  private static final class PresentNamespace extends NamespaceAlreadyExistsException {
    private static final long serialVersionUID = 1L;
    private final String text;

    PresentNamespace(WorkerFailure failure) {
      super(namespaceOf(failure));
      text = failure.getMessage();
    }

    @Override
    public String message() {
      return text;
    }
  }

  private static final class FullNamespace extends NonEmptyNamespaceException {
    private static final long serialVersionUID = 1L;
    private final String text;

    FullNamespace(WorkerFailure failure) {
      super(namespaceOf(failure));
      text = failure.getMessage();
    }

    @Override
    public String message() {
      return text;
    }
  }
}
