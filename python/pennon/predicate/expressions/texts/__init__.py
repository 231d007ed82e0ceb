"""Texts that Java reads: its regular expressions, and its forms of numbers and times."""
