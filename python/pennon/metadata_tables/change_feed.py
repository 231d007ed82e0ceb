"""The changes that a range of commits made: ``FROM t CHANGES FROM VERSION 3 TO VERSION 9``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pennon.metadata_tables.changes_table import change_schema, changes_between, stated_bounds
from pennon.metadata_tables.metadata_table import MetadataTable, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pennon.manifest import Snapshot

__all__ = ["ChangeRange", "change_feed"]


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The range and the form of a change feed.

    Args:
        base: The version whose rows are the beginning.
        last: The version whose commit is the last one; below the base, there is none.
        key: Columns that identify a row, by which a deletion and an insertion become an update.
        is_net: Whether the commits count as one, the last, that leads from the base to it.
    """

    base: int
    last: int
    key: tuple[str, ...] = ()
    is_net: bool = False


def change_feed(changes: ChangeRange) -> MetadataTable:
    """Give the table of these changes, to be read of the snapshot at the last version.

    Args:
        changes: Which.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    return MetadataTable("changes", change_schema, partial(_rows, changes))


def _rows(changes: ChangeRange, snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    base, last = changes.base, changes.last
    if not changes.is_net:
        last = min(last, stated_bounds(selection.predicates)[1])
    if base < last:
        yield from changes_between(snapshot, base, last, changes.key, is_net=changes.is_net)
