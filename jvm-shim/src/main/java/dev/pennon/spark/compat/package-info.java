/** The only place for differences between the versions of Spark. */
package dev.pennon.spark.compat;
