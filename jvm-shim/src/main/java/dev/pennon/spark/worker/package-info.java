/** The worker beside this JVM: its process, its socket, the frames on it and its failures. */
package dev.pennon.spark.worker;
