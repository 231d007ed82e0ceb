"""The hash of the declared protocol, written by ``make wire``, never by hand."""

from typing import Final

PROTOCOL: Final = "be84d2bad40b"
"""Digest of the declaration of all messages; the jar takes that of its ``wire.json``."""
