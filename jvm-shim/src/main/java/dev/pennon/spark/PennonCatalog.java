package dev.pennon.spark;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.functions.Transforms;
import dev.pennon.spark.plan.ExplainProcedure;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;

/**
 * Lance Partitioned Namespaces and plain Lance tables as a catalog of Spark SQL.
 *
 * <p>{@code spark.sql.catalog.<name> = dev.pennon.spark.PennonCatalog}, {@code
 * spark.sql.catalog.<name>.root = <path or URL>}; options under {@code storage.} go to Lance.
 */
public final class PennonCatalog extends WorkerCatalog implements FunctionCatalog, ProcedureCatalog {
  /** Where procedures are, and functions besides the catalog's root. */
  private static final String SYSTEM_NAMESPACE = "system";

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return Transforms.names().stream()
        .filter(function -> holdsFunctions(namespace))
        .map(function -> Identifier.of(namespace, function))
        .toArray(Identifier[]::new);
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    if (!holdsFunctions(identifier.namespace())) {
      throw new NoSuchFunctionException(identifier);
    }
    return Transforms.find(identifier.name())
        .orElseThrow(() -> new NoSuchFunctionException(identifier));
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    if (!holdsFunctions(namespace)) {
      return new Identifier[0];
    }
    return Stream.concat(procedures(null).stream(), ExplainProcedure.ALL.stream())
        .map(procedure -> Identifier.of(new String[] {SYSTEM_NAMESPACE}, procedure.name()))
        .toArray(Identifier[]::new);
  }

  /** The procedure of that name; a worker that does not know it says which there are. */
  @Override
  public UnboundProcedure loadProcedure(Identifier identifier) {
    if (!isSystem(identifier.namespace())) {
      return procedures(identifier.toString()).get(0);
    }
    return ExplainProcedure.ALL.stream()
        .filter(explaining -> explaining.name().equalsIgnoreCase(identifier.name()))
        .findFirst()
        .orElseGet(() -> procedures(identifier.name()).get(0));
  }

  private static boolean holdsFunctions(String[] namespace) {
    return namespace.length == 0 || isSystem(namespace);
  }

  private static boolean isSystem(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase(SYSTEM_NAMESPACE);
  }
}
