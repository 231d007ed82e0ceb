"""A predicate bound to a table: its columns and literals get field ids and types."""
