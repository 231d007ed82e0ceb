"""How far a stream has read a table: the text that its checkpoint keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from pennon.errors import MalformedMessage

__all__ = ["BEGINNING", "StreamPosition"]

BEGINNING: Final = 0
"""Stands for the version before any row."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Up to which version the rows of a table have been read.

    Args:
        version: The last version whose rows were; ``BEGINNING`` for none.
        table_id: Which table it is a position of, so that a checkpoint is of no use for another one
            of its name; empty for a table without an id.

    Example:
        >>> StreamPosition.from_json(StreamPosition(7, "ab").to_json())
        StreamPosition(version=7, table_id='ab')
    """

    version: int
    table_id: str

    def to_json(self) -> str:
        """Write the position; equal ones have equal texts, by which Spark compares them."""
        return json.dumps({"version": self.version, "table": self.table_id})

    @classmethod
    def from_json(cls, text: str) -> StreamPosition:
        """Read the position.

        Raises:
            MalformedMessage: It is that of another source.
        """
        try:
            stored = json.loads(text)
        except json.JSONDecodeError:
            stored = None
        match stored:
            case {"version": int(version), "table": str(table_id)}:
                return cls(version, table_id)
        raise MalformedMessage(why="the stream's checkpoint is that of another source")
