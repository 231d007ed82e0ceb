"""Rows of one leaf out of its files: columns, filters, the requested types."""
