"""What the command line prints: rows, tables, progress."""
