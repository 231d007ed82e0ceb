"""How far a stream has read a table: the text that its checkpoint keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
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
        identity: What tells the version from the same one of another table; empty at the
            beginning, and where ``table_id`` tells them apart.
        awaited: The time before which no commit's rows are read; None once a commit has come
            behind it.

    Example:
        >>> StreamPosition.from_json(StreamPosition(7, "ab").to_json())
        StreamPosition(version=7, table_id='ab', identity='', awaited=None)
    """

    version: int
    table_id: str
    identity: str = ""
    awaited: datetime | None = None

    def to_json(self) -> str:
        """Write the position; equal ones have equal texts, by which Spark compares them."""
        written: dict[str, object] = {"version": self.version, "table": self.table_id}
        # Left out where there is none: so the positions of checkpoints that never had one read.
        if self.identity:
            written["identity"] = self.identity
        if self.awaited is not None:
            written["awaited"] = self.awaited.isoformat()
        return json.dumps(written)

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
                awaited = stored.get("awaited")
                moment = None if awaited is None else datetime.fromisoformat(awaited)
                return cls(version, table_id, stored.get("identity", ""), moment)
        raise MalformedMessage(why="the stream's checkpoint is that of another source")
