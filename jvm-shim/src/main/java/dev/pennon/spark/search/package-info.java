/** Searches in SQL: table functions, and joins with the nearest rows. */
package dev.pennon.spark.search;
