/**
 * The values of the partition transforms that Spark evaluates itself.
 *
 * <p>Values only: what a transform means for pruning or specs is in the Python package, whose
 * values these equal (shared vectors). NULL in gives NULL out.
 */
package dev.pennon.spark.functions;
