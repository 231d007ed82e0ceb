"""Functions of source columns that are constant over every partition, and where they meet."""
