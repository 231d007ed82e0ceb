"""Counting what writes do not know of the columns of leaves."""
