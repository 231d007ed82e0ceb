/** Parts of a query that the worker executes, as scans, and the keys that it derives for them. */
package dev.pennon.spark.fragments;
