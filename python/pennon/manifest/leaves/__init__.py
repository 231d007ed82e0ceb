"""The rows of leaves in ``__manifest``: indexed, chosen, looked up."""
