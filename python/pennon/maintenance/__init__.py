"""What keeps a table healthy: one procedure per file."""
