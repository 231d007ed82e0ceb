"""What foreign writers drop from ``__manifest``: noticed, and given back."""
