/** What one task reads: its split, Arrow batches from the worker as Spark's columns, metrics. */
package dev.pennon.spark.tasks;
