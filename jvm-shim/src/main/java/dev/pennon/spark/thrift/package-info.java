/** The Thrift server, and what it tells JDBC of catalogs. */
package dev.pennon.spark.thrift;
