"""What a namespace's ``__manifest`` tells of itself: its versions, its rows as stored."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.manifest.dataset.storage import listed_versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.manifest.snapshot import Snapshot

__all__ = ["stored_rows", "stored_schema", "versions_until"]

_TIME = pa.timestamp("us", "UTC")


def versions_until(snapshot: Snapshot) -> pa.Table:
    """List the versions up to the snapshot's that are still there, the first one first.

    Args:
        snapshot: Of a partitioned namespace, or of a plain dataset.

    Returns:
        A table of ``version`` (int64) and ``committed_at`` (microseconds, UTC).
    """
    known = [
        each for each in listed_versions(snapshot.manifest) if each["version"] <= snapshot.version
    ]
    known.sort(key=lambda each: int(each["version"]))
    return pa.table(
        {
            "version": pa.array([int(each["version"]) for each in known], pa.int64()),
            # Lance gives the local time without saying so.
            "committed_at": pa.array([each["timestamp"].astimezone(UTC) for each in known], _TIME),
        }
    )


def stored_schema(snapshot: Snapshot) -> pa.Schema:
    """Give the columns of ``__manifest`` as they are stored."""
    return snapshot.manifest.schema


def stored_rows(snapshot: Snapshot, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Stream the rows of ``__manifest`` as they are stored.

    Args:
        snapshot: Of a partitioned namespace.
        columns: Of ``stored_schema``.

    Spec: "Manifest Table Schema".
    """
    yield from snapshot.manifest.scanner(columns=list(columns)).to_reader()
