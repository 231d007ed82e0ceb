"""The values in a predicate: typed literals, their conversion, and lists of them."""
