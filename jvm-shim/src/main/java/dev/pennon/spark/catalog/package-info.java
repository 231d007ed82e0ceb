/** What Spark asks of a catalog, turned into requests to the worker. */
package dev.pennon.spark.catalog;
