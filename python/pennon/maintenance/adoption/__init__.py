"""Existing datasets become partitions, where they are or row by row."""
