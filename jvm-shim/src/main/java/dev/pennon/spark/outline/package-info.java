/** The outline of a plan that is told to the worker: each node, its expressions as text. */
package dev.pennon.spark.outline;
