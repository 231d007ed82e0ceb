"""Commits to ``__manifest``: each made once, or refused as a value."""
