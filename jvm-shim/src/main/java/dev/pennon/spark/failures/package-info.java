/** What went wrong, in Spark's exceptions with the worker's words. */
package dev.pennon.spark.failures;
