package dev.pennon.spark.catalog;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/** A procedure of Spark's CALL that answers with rows, whatever the types of its arguments. */
public abstract class RowsProcedure implements UnboundProcedure {
  private final String name;
  private final List<ProcedureParameter> parameters;

  /** What a procedure answered. */
  public record Rows(StructType readSchema, InternalRow... rows) implements LocalScan {}

  protected RowsProcedure(String name, List<ProcedureParameter> parameters) {
    this.name = name;
    this.parameters = List.copyOf(parameters);
  }

  protected abstract Rows answer(InternalRow arguments);

  @Override
  public final String name() {
    return name;
  }

  protected final ProcedureParameter[] parameters() {
    return parameters.toArray(ProcedureParameter[]::new);
  }

  @Override
  public final BoundProcedure bind(StructType argumentTypes) {
    return new Bound();
  }

  /** By its class Spark sees that the arguments have their types, and those not given a default. */
  private final class Bound implements BoundProcedure {
    @Override
    public String name() {
      return name;
    }

    @Override
    public ProcedureParameter[] parameters() {
      return RowsProcedure.this.parameters();
    }

    /** Procedures change tables, or tell how they are now. */
    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public Iterator<Scan> call(InternalRow arguments) {
      return List.<Scan>of(answer(arguments)).iterator();
    }
  }
}
