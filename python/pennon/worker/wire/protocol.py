"""What the messages are, as one text: written by ``make wire``, never by hand."""

from typing import Final

PROTOCOL: Final = "4e847e2e9fdc"
"""Digest of the declaration of all messages; the jar takes that of its ``wire.json``."""
