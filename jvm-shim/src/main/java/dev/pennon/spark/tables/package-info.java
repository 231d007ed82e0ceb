/** A table as Spark asks it: its columns and abilities, how it is read, written and altered. */
package dev.pennon.spark.tables;
