"""Reads a table, partitioned or plain, batch by batch, as a stream does."""

from __future__ import annotations

from pennon.catalog.layouts.stored_tables import open_location
from pennon.leaf import open_leaf
from pennon.manifest import Snapshot
from pennon.streams import StreamOptions, StreamPosition, batch_end, batch_start, planned_batch

ALL = StreamOptions()


def newest(path: str) -> Snapshot:
    snapshot = open_location(path, None, None, {})
    assert snapshot is not None
    return snapshot


class Follower:
    """Reads a table batch by batch.

    Args:
        path: The table.
        options: The stream's.
        position: Where it goes on; None for a new stream.
    """

    def __init__(
        self, path: str, options: StreamOptions = ALL, position: StreamPosition | None = None
    ) -> None:
        self.began = newest(path)
        self.options = options
        self.position = batch_start(self.began, options) if position is None else position
        self.ids: list[int] = []

    def end(self) -> StreamPosition:
        """Find where the next batch ends."""
        return batch_end(newest(self.began.location), self.position, self.options)

    def read(self, end: StreamPosition | None = None) -> list[int]:
        """Read the next batch, or one that was begun; gives the ids that it had."""
        end = self.end() if end is None else end
        leaves, assigned = planned_batch(
            self.began, self.position, end, self.options, num_tasks=3, max_bytes=1 << 20
        )
        rows = leaves.to_pylist()
        ids: list[int] = []
        for piece in assigned.to_pylist():
            leaf = rows[piece["leaf"]]
            dataset = open_leaf(self.began.location, leaf["location"], leaf["read_version"])
            fragments = dataset.get_fragments()
            chosen = fragments[piece["first_fragment"] : piece["end_fragment"]]
            ids += dataset.scanner(columns=["id"], fragments=chosen).to_table()["id"].to_pylist()
        self.position = StreamPosition.from_json(end.to_json())
        self.ids += ids
        return ids

    def again(self) -> Follower:
        """Start the stream again, with its checkpoint."""
        kept = StreamPosition.from_json(self.position.to_json())
        return Follower(self.began.location, self.options, kept)
