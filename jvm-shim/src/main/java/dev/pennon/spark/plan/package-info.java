/** The plan of a query: told to the worker, and rewritten as the worker decided. */
package dev.pennon.spark.plan;
