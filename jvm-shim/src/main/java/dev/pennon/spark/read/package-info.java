/** Planning the scan of a table: push-down, pruning, splits, statistics. */
package dev.pennon.spark.read;
