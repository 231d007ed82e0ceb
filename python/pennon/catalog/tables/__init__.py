"""A name's table, loaded: its schema, its version, what changed in it."""
