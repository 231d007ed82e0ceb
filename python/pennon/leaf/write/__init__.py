"""Rows into the leaves of their partitions: staged fragments, and the commit of one leaf."""
