"""The protocol of a metadata table: its columns, and its rows for a snapshot.

A search is one, too: what the call of a table function finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pennon.manifest import Snapshot

__all__ = ["MetadataTable", "SearchCall", "Selection"]


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a metadata table is read.

    Args:
        columns: The requested columns; what others would cost need not be paid.
        predicates: Spark SQL texts by which rows may be left out. Who asks filters again.
    """

    columns: tuple[str, ...]
    predicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """One metadata table.

    Args:
        name: The last part of its name in SQL.
        schema: Gives the columns for a snapshot.
        rows: Streams tables that have the requested columns at least.
        needs_manifest: Whether a table without a manifest has none.
        detail: What EXPLAIN says of it beside its name.
    """

    name: str
    schema: Callable[[Snapshot], pa.Schema]
    rows: Callable[[Snapshot, Selection], Iterator[pa.Table]]
    needs_manifest: bool = False
    detail: Callable[[Snapshot], str] | None = None


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A call of a function that searches.

    Args:
        function: Its name in SQL.
        arguments: Their values as JSON, by name; by place, from 0, where none is written.
        where: Spark SQL of conditions that rows satisfy first, with literals that say their type.
        time_zone: The session's.
    """

    function: str
    arguments: Mapping[str, str]
    where: tuple[str, ...] = ()
    time_zone: str = "UTC"
