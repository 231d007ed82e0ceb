/** Reading a table: push-down, the plan as Spark sees it, and Arrow batches from the worker. */
package dev.pennon.spark.read;
