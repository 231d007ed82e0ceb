"""The hash of the declared protocol, written by ``make wire``, never by hand."""

from typing import Final

PROTOCOL: Final = "48c85fd01641"
"""Digest of the declaration of all messages; the jar takes that of its ``wire.json``."""
