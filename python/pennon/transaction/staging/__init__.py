"""What a transaction has staged, and the leaves and statistics that follow from it."""
