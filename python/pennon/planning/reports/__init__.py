"""What is reported of a plan: to Spark's optimizer, to EXPLAIN, and to users."""
