"""Columns as SQL names, types and changes them."""
