/** Spark's expressions as SQL text, which the worker reads. */
package dev.pennon.spark.expressions;
