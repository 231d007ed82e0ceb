"""The range of commits that a change feed covers, as SQL states it: by versions, tags or times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.catalog.failures_by_name import by_name
from pennon.catalog.tables.loaded_table import Table, load
from pennon.catalog.tables.row_history import key_columns
from pennon.errors import ChangeKeyMissing, ChangeRangeReversed
from pennon.manifest.versions.manifest_history import versions_until
from pennon.metadata_tables.change_feed import ChangeRange
from pennon.predicate.values.time_units import EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.directory import Name

__all__ = ["ChangeBounds", "find_changes"]

# Delta counts versions from 0: what is read from there on is everything.
_BEFORE_THE_FIRST: Final = "0"


@dataclass(frozen=True, slots=True)
class ChangeBounds:
    """The first and the last commit, each by a version or by a time; None leaves an end open.

    Args:
        start: A version, or the name of a tag.
        end: As ``start``.
        start_micros: A time, in microseconds since the epoch.
        end_micros: As ``start_micros``.
        includes_start: Whether the changes of the commit at the start count, too.
        includes_end: Whether those of the commit at the end do.
    """

    start: str | None = None
    end: str | None = None
    start_micros: int | None = None
    end_micros: int | None = None
    includes_start: bool = True
    includes_end: bool = True


def find_changes(
    catalog: Catalog,
    identifier: Name,
    bounds: ChangeBounds,
    key: Sequence[str] = (),
    *,
    is_paired: bool = False,
    is_net: bool = False,
) -> tuple[Table, ChangeRange]:
    """Find the first and the last version of a change feed.

    Args:
        catalog: The catalog.
        identifier: The table.
        bounds: The commits.
        key: Columns whose values identify a row.
        is_paired: Whether a deletion and an insertion of one key are reported as an update.
        is_net: Whether the commits count as one.

    Returns:
        The table at the last version, whose columns all changes have, and the range.

    Raises:
        SnapshotNotFound: A version, that of a time, or that before the first commit, has expired.
        TableVersionNotFound: There is no such tag.
        ChangeRangeReversed: The start is behind the end.
        ChangeKeyMissing: Updates are asked for, and no key column is named.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    newest = load(catalog, identifier)
    if is_paired and not key:
        raise ChangeKeyMissing(table=newest.name)
    versions = versions_until(newest.snapshot)
    numbers: list[int] = versions["version"].to_pylist()
    moments: list[int] = versions["committed_at"].cast(pa.int64()).to_pylist()

    def named(version: str) -> int:
        return load(catalog, identifier, version).snapshot.version

    first, last = numbers[0], numbers[-1]
    start, end_version = first, last
    if bounds.start is not None:
        start = 0 if bounds.start == _BEFORE_THE_FIRST else named(bounds.start)
        first = start + (not bounds.includes_start)
    elif bounds.start_micros is not None:
        least = bounds.start_micros + (not bounds.includes_start)
        later = [n for n, moment in zip(numbers, moments, strict=True) if moment >= least]
        first = later[0] if later else last + 1
    if bounds.end is not None:
        end_version = named(bounds.end)
        last = end_version - (not bounds.includes_end)
    elif bounds.end_micros is not None:
        most = bounds.end_micros - (not bounds.includes_end)
        last = max(
            (n for n, moment in zip(numbers, moments, strict=True) if moment <= most), default=0
        )
        if last + 1 not in (*numbers, numbers[-1] + 1):
            load(catalog, identifier, timestamp_micros=most)  # says where this version has expired
    _check_order(
        newest.name, bounds, (start, end_version), dict(zip(numbers, moments, strict=True))
    )
    covered = [number for number in numbers if number <= last]
    if not covered or first > covered[-1]:
        return newest, ChangeRange(base=last, last=last)
    end = newest if covered[-1] == numbers[-1] else load(catalog, identifier, str(covered[-1]))
    names = tuple(key_columns(end, key)) if is_paired else ()
    return end, ChangeRange(_base(newest, numbers, first), covered[-1], names, is_net)


def _check_order(
    table: str, bounds: ChangeBounds, ends: tuple[int, int], moments: Mapping[int, int]
) -> None:
    """Refuse a range whose start is behind its end; one of each kind compare by their times."""
    first, last = bounds.start_micros, bounds.end_micros
    if bounds.start is not None and bounds.end is not None:
        is_reversed = ends[0] > ends[1]
    else:
        earlier = moments.get(ends[0]) if bounds.start is not None else first
        later = moments.get(ends[1]) if bounds.end is not None else last
        is_reversed = earlier is not None and later is not None and earlier > later
    if is_reversed:
        raise ChangeRangeReversed(
            table=table, start=_spelled(bounds.start, first), end=_spelled(bounds.end, last)
        )


def _spelled(version: str | None, micros: int | None) -> str:
    if version is not None or micros is None:
        return f"version {version}"
    return str(EPOCH + timedelta(microseconds=micros))


def _base(table: Table, numbers: Sequence[int], first: int) -> int:
    """Give the version before the first commit; the commit that made the table has no rows."""
    if first <= 1 and numbers[0] == 1:
        return 1
    if first - 1 not in numbers:
        with by_name(table.name):
            table.snapshot.at_version(first - 1)  # says which versions there are
    return first - 1
