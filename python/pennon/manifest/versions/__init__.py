"""The versions of ``__manifest``: what made each, and what they share."""
