package dev.pennon.spark.read;

import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Statistics;

/** What Spark's planner wants to know of a scan, where it is known. */
record RowsAndBytes(OptionalLong numRows, OptionalLong sizeInBytes) implements Statistics {}
