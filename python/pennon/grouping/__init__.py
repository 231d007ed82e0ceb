"""Which partitioning is reported to Spark, and its reductions."""
