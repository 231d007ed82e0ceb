/** What the worker answers as records: their fields, its transforms, its values. */
package dev.pennon.spark.replies;
