"""A predicate on columns as a condition on partition values: the inclusive projection."""
