/** Statements that Spark's grammar does not have, and rules in Spark's analysis and planning. */
package dev.pennon.spark.sql;
