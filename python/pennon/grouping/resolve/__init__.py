"""Which scans of a query share a key, and which of its operators that serves."""
