/** The rules that ask the worker about a plan, and rewrite it as the worker decided. */
package dev.pennon.spark.plan;
