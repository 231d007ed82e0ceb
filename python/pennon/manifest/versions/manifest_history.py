"""The history of a namespace's ``__manifest``: its versions, and its rows as stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.caching import version_time
from pennon.manifest.dataset.storage import listed_versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from pennon.manifest.snapshot import Snapshot

__all__ = ["committed_at", "stored_rows", "stored_schema", "versions_until"]

_TIME = pa.timestamp("us", "UTC")


def committed_at(snapshot: Snapshot) -> datetime:
    """Tell when a version was committed, in UTC and without I/O.

    Args:
        snapshot: Of a partitioned namespace, or of a plain dataset.
    """
    return version_time(snapshot.manifest.get_version())


def versions_until(snapshot: Snapshot) -> pa.Table:
    """List the versions up to the snapshot's that are still there, the first one first.

    Args:
        snapshot: Of a partitioned namespace, or of a plain dataset.

    Returns:
        A table of ``version`` (int64) and ``committed_at`` (microseconds, UTC).
    """
    entries = [
        version
        for version in listed_versions(snapshot.manifest)
        if version["version"] <= snapshot.version
    ]
    entries.sort(key=lambda entry: int(entry["version"]))
    return pa.table(
        {
            "version": pa.array([int(entry["version"]) for entry in entries], pa.int64()),
            # Lance gives the local time without saying so.
            "committed_at": pa.array([version_time(entry) for entry in entries], _TIME),
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
