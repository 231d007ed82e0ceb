/** Statements that Spark's grammar, or its resolution of names, does not take as they are. */
package dev.pennon.spark.statements;
