"""The well-known partition transforms, one per file."""
