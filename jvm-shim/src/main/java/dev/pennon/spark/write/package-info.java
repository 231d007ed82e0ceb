/** Writing a table: distribution, Arrow batches to the worker, and the one commit. */
package dev.pennon.spark.write;
