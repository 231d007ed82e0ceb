"""Requests of the JVM, each answered by calls of the library."""
