"""What stands in ``__manifest``: columns, rows, names, properties, statistics."""
