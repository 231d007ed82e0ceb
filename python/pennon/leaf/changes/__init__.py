"""Changes to rows that a leaf already has."""
