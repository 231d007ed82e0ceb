"""What Python does to the rows of a table."""
