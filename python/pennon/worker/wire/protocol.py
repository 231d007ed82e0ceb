"""What the messages are, as one text: written by ``make wire``, never by hand."""

from typing import Final

PROTOCOL: Final = "ab3343e396d6"
"""Digest of the declaration of all messages; the jar takes that of its ``wire.json``."""
