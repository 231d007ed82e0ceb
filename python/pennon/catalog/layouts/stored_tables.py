"""The implementation of ``StoredTable`` for each table layout, and which one is at a location."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pennon.caching.lance_sessions import forget_newest
from pennon.catalog.configured_catalog import is_local
from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.catalog.layouts.plain_snapshot import open_plain
from pennon.catalog.layouts.plain_table import PlainTable
from pennon.catalog.table_name import by_name
from pennon.draft import open_snapshot
from pennon.errors import DraftLayout, NamespaceHasNoManifest, PathNotTable, TableNotFound
from pennon.manifest.dataset.storage import manifest_uri
from pennon.manifest.table_layout import TableLayout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from pennon.catalog.layouts.stored_table import StoredTable
    from pennon.manifest import Snapshot

__all__ = [
    "DROPPED",
    "STORED_TABLES",
    "check_is_there",
    "missed_by_name",
    "open_location",
    "stored_table",
]


# A read-only table over a namespace of the older draft.


@dataclass(frozen=True, slots=True)
class DraftTable(PartitionedTable):
    """A namespace of the draft at one version of its manifest."""

    def check_writable(self, verb: str) -> None:
        """Refuse every change.

        Raises:
            DraftLayout: Always; it names the command that makes the table writable.
        """
        raise DraftLayout(verb=verb, location=self.snapshot.location)


STORED_TABLES: Final[Mapping[TableLayout, type[StoredTable]]] = MappingProxyType(
    {
        TableLayout.PARTITIONED: PartitionedTable,
        TableLayout.PLAIN: PlainTable,
        TableLayout.DRAFT: DraftTable,
    }
)


def stored_table(name: str, snapshot: Snapshot) -> StoredTable:
    """Give what can be done to a table that was opened.

    Args:
        name: Its name, for errors.
        snapshot: The version.
    """
    return STORED_TABLES[snapshot.layout](name, snapshot)


# Opens a table by its location alone, and says of one that was dropped meanwhile that it was.
#
# The tasks of a write do so as well: nothing here looks a name up in a catalog.

DROPPED: Final = "it was dropped meanwhile"
"""What is said of a table that was there when a statement began."""


def open_location(
    location: str, version: int | None, timestamp: datetime | None, storage: Mapping[str, str]
) -> Snapshot | None:
    """Open a partitioned namespace or a plain dataset; None where nothing is.

    Args:
        location: Path or URL.
        version: Its number; None for the newest.
        timestamp: The newest version up to then; None for any.
        storage: Given to Lance.

    Raises:
        PathNotTable: Something else is there.
    """
    # Unlike Path.is_file it says no, too, of what is no path: names that are too long.
    if is_local(location) and os.path.isfile(location):  # noqa: PTH113
        raise PathNotTable(path=location, why="it is a file and not a folder")
    try:
        return open_snapshot(location, version, timestamp, storage)
    except NamespaceHasNoManifest as error:
        try:
            return open_plain(location, version, timestamp, storage)
        except OSError:
            raise PathNotTable(path=location, why="it has no __manifest") from error


def check_is_there(name: str, location: str, storage: Mapping[str, str]) -> None:
    """Miss a table that was opened earlier, where nothing is left at its location.

    Args:
        name: The table's name, for the error.
        location: Path or URL.
        storage: Given to Lance.

    Raises:
        TableNotFound: Nothing is there any more.
        PathNotTable: Something else is.
    """
    forget_newest(manifest_uri(location))  # what was seen of it a little ago may be gone
    if open_location(location, None, None, storage) is None:
        raise TableNotFound(table=name, near=DROPPED)


@contextlib.contextmanager
def missed_by_name(name: str, location: str, storage: Mapping[str, str]) -> Iterator[None]:
    """Say of a table that was dropped since it was opened that it was; failures are by its name.

    Args:
        name: The table's name.
        location: Path or URL.
        storage: Given to Lance.

    Raises:
        TableNotFound: Nothing is there any more.
        NamespaceHasNoManifest: It is a plain dataset, and the statement is for others.
    """
    try:
        with by_name(name):
            yield
    except NamespaceHasNoManifest:
        check_is_there(name, location, storage)
        raise
