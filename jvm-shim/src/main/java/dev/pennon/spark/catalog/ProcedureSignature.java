package dev.pennon.spark.catalog;

import java.util.List;

/** A procedure as the worker declares it, with the types of its parameters in SQL. */
record ProcedureSignature(
    String name, String description, List<ProcedureParameter> parameters) {
  record ProcedureParameter(String name, String type, boolean required) {}
}
