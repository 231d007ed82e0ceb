"""A table as SQL names it: a partitioned namespace or a plain dataset at one version."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.caching import LOOK
from pennon.caching.lance_sessions import forget_newest
from pennon.catalog.columns.spark_types import declarations
from pennon.catalog.configured_catalog import Catalog, absolute_place, is_local, is_path
from pennon.catalog.directory import Directory, Registration, place_seen, saw_place
from pennon.catalog.layouts import StoredTable, stored_table
from pennon.catalog.layouts.plain_snapshot import open_plain
from pennon.catalog.layouts.stored_tables import DROPPED, open_location
from pennon.catalog.partitioning import partitioning
from pennon.catalog.table_name import by_name, parts_of, storage_of
from pennon.draft import open_snapshot
from pennon.errors import (
    ChangeKeyMissing,
    ChangeRangeReversed,
    NamespaceHasNoManifest,
    PathNotTable,
    PennonError,
    TableFilesGone,
    TableMadeAnew,
    TableNotFound,
    TableVersionNotFound,
    UnknownColumn,
)
from pennon.leaf.read.metadata_columns import ROW_ID_COLUMNS, metadata_columns
from pennon.manifest import Snapshot
from pennon.manifest.dataset.storage import manifest_uri
from pennon.manifest.partition_struct import struct_fields
from pennon.manifest.table_identity import check_same_table, table_id
from pennon.manifest.table_layout import TableLayout
from pennon.manifest.versions.history import versions_until
from pennon.manifest.versions.tags import MAIN, listed_names, tags_of
from pennon.metadata_tables.changes_table import ChangeRange, change_schema, changes_between
from pennon.predicate.values.time_units import EPOCH
from pennon.spec.column_names import hiding_column, python_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.catalog.directory import Name

__all__ = [
    "ChangeBounds",
    "Table",
    "find_changes",
    "load",
    "read_changes",
    "reopen",
    "reopen_newest",
    "told_changes",
]

_LAST_VERSION = (1 << 64) - 1
# A query names a table once, and Spark loads it again before it runs it.
_NAMED_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Table:
    """A table at one version.

    Args:
        name: Its full name, or its path.
        identifier: The parts below the catalog.
        snapshot: What is read.
        is_managed: Whether the catalog chose its location, so that no DDL need state it.
        look: Tells this look at the table from the next one.
    """

    name: str
    identifier: Name
    snapshot: Snapshot
    is_managed: bool = False
    look: str = field(default_factory=lambda: secrets.token_hex(8), repr=False, compare=False)

    @property
    def stored(self) -> StoredTable:
        """What can be done to it, however it is stored."""
        return stored_table(self.name, self.snapshot)

    @property
    def identity(self) -> str:
        """What distinguishes the table at this version from another one that was at its location.

        Where the manifest leaves the versions of leaves open, it distinguishes the queries as well:
        the next one looks at the leaves anew.
        """
        identity = self.snapshot.identity
        return identity if self.snapshot.names_leaf_versions else f"{identity}{LOOK}{self.look}"

    @property
    def table_id(self) -> str | None:
        """What is the same at all versions of the table, and no other's; None where nothing is.

        Spark asks by it whether a table that a query was made for has been made anew.
        """
        if not self.stored.has_manifest:
            return None
        return table_id(self.snapshot)

    @property
    def metadata_columns(self) -> pa.Schema:
        """The columns beside the table's own."""
        return pa.schema(metadata_columns(struct_fields(self.snapshot), self.snapshot.schema.arrow))

    @property
    def row_id(self) -> tuple[str, ...]:
        """The metadata columns that name a row; none where a column's name stands in the way."""
        return ROW_ID_COLUMNS if hiding_column(self.snapshot.schema.arrow.names) is None else ()

    @property
    def partitioning(self) -> tuple[dict[str, object], ...]:
        """The current spec as Spark's transforms."""
        return partitioning(self.snapshot.current_spec, self.snapshot.schema)

    @property
    def properties(self) -> dict[str, str]:
        """The user's properties, and Spark's reserved ones: comment, provider, location."""
        shown = {
            **self.snapshot.properties,
            **declarations(self.snapshot.schema.arrow),
            "provider": "lance",
            "location": self.snapshot.location,
        }
        if self.is_managed:
            shown["is_managed_location"] = "true"
        comment = self.snapshot.comment
        return shown if comment is None else {**shown, "comment": comment}


def load(
    catalog: Catalog,
    identifier: Name,
    version: str | None = None,
    timestamp_micros: int | None = None,
    *,
    is_named: bool = False,
) -> Table:
    """Load a table by its name or its path, now or at an earlier version.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name, or one path or URL.
        version: VERSION AS OF, a version of ``__manifest`` (of the dataset for a plain one), or the
            name of a tag, or ``main`` for the newest.
        timestamp_micros: TIMESTAMP AS OF, in microseconds since the epoch.
        is_named: Whether the statement has loaded it by its name before: a store is not asked
            again where it is, but where that was some seconds ago.

    Raises:
        TableNotFound: There is none.
        TableFilesGone: There is one, and its folder is gone.
        PathNotTable: The path holds something else, or a partition of a table.
        TableVersionNotFound: There is no such tag, or a plain dataset lacks the version.
    """
    timestamp = None
    if timestamp_micros is not None:
        timestamp = EPOCH + timedelta(microseconds=timestamp_micros)
    if len(identifier) == 1 and is_path(identifier[0]):
        location = absolute_place(identifier[0])
        number = _number(location, location, version, catalog.storage)
        snapshot = open_location(location, number, timestamp, catalog.storage)
        if snapshot is None:
            makes = "CREATE TABLE makes one, or save() in mode error or ignore"
            raise TableNotFound(table=location, near=f"nothing readable is there: {makes}")
        if not snapshot.layout.has_manifest:
            _check_no_partition(location, catalog.storage)
        return Table(location, identifier, snapshot)
    newest: Future[Snapshot] | None = None
    if version is None and timestamp is None:
        registration, newest = _registered_and_opened(catalog, identifier, is_named=is_named)
    else:
        registration = Directory(catalog).registration(identifier)
    name = catalog.full_name(identifier)
    storage = catalog.storage_of(identifier)
    number = _number(name, registration.location, version, storage)
    opened: Snapshot | None
    with by_name(name):
        if registration.is_partitioned:
            try:
                if newest is not None:
                    opened = newest.result()
                else:
                    opened = open_snapshot(registration.location, number, timestamp, storage)
            except NamespaceHasNoManifest as error:
                raise TableFilesGone(table=name, location=registration.location) from error
        else:
            opened = open_plain(registration.location, number, timestamp, storage)
    if opened is None:
        why = f"the catalog names {registration.location}, and no dataset is there"
        raise TableNotFound(table=name, near=why)
    return Table(name, identifier, opened, catalog.is_below_root(opened.location))


def _check_no_partition(location: str, storage: Mapping[str, str]) -> None:
    """Refuse a partition as a table of its own: its newest version is not what the table reads."""
    above, _, folder = location.rstrip("/").rpartition("/")
    try:
        table = open_snapshot(above, None, None, storage)
        if not (table.layout.records_commits and table.is_strong):
            return
        folders = table.leaves().table["location"].to_pylist()
    except (PennonError, OSError, ValueError):  # no table, or none that can be read
        return
    if folder in folders:
        why = f"it is a partition of the table {above}, which says what version of it is read"
        raise PathNotTable(path=location, why=why)


def _registered_and_opened(
    catalog: Catalog, identifier: Name, *, is_named: bool
) -> tuple[Registration, Future[Snapshot] | None]:
    """Ask for a table's place; a store is asked at once what is where the table was last.

    Returns:
        The registration, and the newest version where it is there; None where nobody has looked.
    """
    if catalog.is_local:
        return Directory(catalog).registration(identifier), None
    storage = catalog.storage_of(identifier)
    before, found_at = place_seen(catalog, identifier)
    asked_at = time.monotonic()
    if before is None:
        registration, opened = Directory(catalog).registration(identifier), None
    else:
        with ThreadPoolExecutor(1) as pool:
            opened = pool.submit(open_snapshot, before, None, None, storage)
            is_known = is_named and asked_at - found_at < _NAMED_SECONDS
            if is_known and opened.exception() is None:
                return Registration(before, True), opened
            registration = Directory(catalog).registration(identifier)
    if registration.is_partitioned:
        saw_place(catalog, identifier, registration.location, asked_at)
    is_same = registration.is_partitioned and registration.location == before
    return registration, opened if is_same else None


def reopen(
    name: str,
    location: str,
    version: int,
    identity: str,
    storage: Mapping[str, str],
    *,
    layout: TableLayout,
) -> Snapshot:
    """Open the snapshot that an earlier load pinned.

    Args:
        name: The table's name, for errors.
        location: Path or URL.
        version: The version that was loaded.
        identity: The ``Table.identity`` that was loaded.
        storage: Given to Lance.
        layout: How it was stored.

    Raises:
        SnapshotNotFound: That version has expired.
        TableMadeAnew: Another table stands there by now.
        TableNotFound: Nothing is there any more.
        TableVersionNotFound: That version of a plain dataset has been removed.
    """
    snapshot = Snapshot.seen(location, version, storage) if not is_local(location) else None
    if snapshot is not None and layout.has_manifest and snapshot.identity == identity:
        return snapshot  # a statement asks a store once
    snapshot = None
    with by_name(name):
        if layout.has_manifest:
            with contextlib.suppress(NamespaceHasNoManifest):
                snapshot = open_snapshot(location, version, None, storage)
        else:
            snapshot = open_plain(location, version, None, storage)
    if snapshot is None:
        raise TableNotFound(table=name, near=DROPPED)
    if _of_table(snapshot.identity) != _of_table(identity):
        raise TableMadeAnew(table=name, location=location)
    return snapshot


def reopen_newest(catalog: Catalog, name: str, location: str, table_id: str) -> Snapshot:
    """Open the newest version of a table that was loaded earlier.

    Args:
        catalog: The catalog.
        name: The table's name, or its path.
        location: Path or URL.
        table_id: The ``Table.table_id`` that was loaded; empty where there was none.

    Raises:
        TableMadeAnew: Another table stands there, or has the name, by now.
        TableNotFound: Nothing is there any more, and no table has the name.
    """
    forget_newest(manifest_uri(location))  # its name may lead to another table by now
    snapshot = open_location(location, None, None, storage_of(catalog, name))
    if snapshot is None:
        identifier = parts_of(catalog, name)
        named = None if is_path(identifier[0]) else Directory(catalog).find(identifier)
        if named is not None and named.location != location:
            raise TableMadeAnew(table=name, location=named.location)
        raise TableNotFound(table=name, near=DROPPED)
    with by_name(name):
        check_same_table(snapshot, table_id)
    return snapshot


def _of_table(identity: str) -> str:
    """Leave away how the leaves looked."""
    return identity.partition(LOOK)[0]


def _number(
    table: str, location: str, version: str | None, storage: Mapping[str, str]
) -> int | None:
    """Give the number of a version, which may be named by a tag or ``main``."""
    if version is None:
        return None
    if not version.strip().isdecimal():
        return _tagged(table, location, version, storage)
    number = int(version)
    if number > _LAST_VERSION:
        raise TableVersionNotFound(
            table=table, asked=f"at version {version}", why="versions are numbers of 64 bits"
        )
    return number


def _tagged(table: str, location: str, name: str, storage: Mapping[str, str]) -> int:
    newest = open_location(location, None, None, storage)
    tags = {} if newest is None else tags_of(newest.manifest)
    if name not in tags:
        if newest is not None and name == MAIN:
            return newest.version
        raise TableVersionNotFound(
            table=table,
            asked=f"at version {name!r}",
            why=f"versions are whole numbers or tags, and {listed_names(tags)}",
        )
    return tags[name].version


# The changes that commits made to the rows of a table, for Python and for CALL.

_OF_COMMIT = ("_change_type", "_commit_version", "_commit_timestamp")


def read_changes(end: Table, start: Table, key: Sequence[str]) -> pa.Table:
    """Read what the commits between two versions did to the rows, in the columns of the later one.

    Args:
        end: The table at the later version.
        start: The table at the earlier version.
        key: Columns that identify a row, by which a deletion and an insertion become an update.

    Raises:
        ChangeRangeReversed: The start is behind the end.
        UnknownColumn: A column of the key is not there.
        ChangesNotPaired: Several rows of one commit have the same key.
        ChangesNotKept: A version does not hold its rows.
        UnsupportedTableChange: The table has a column of a name that changes have.
    """
    snapshot = end.snapshot
    first, last = start.snapshot.version, snapshot.version
    if first > last:
        raise ChangeRangeReversed(table=end.name, start=f"version {first}", end=f"version {last}")
    with by_name(end.name):
        schema = change_schema(snapshot)
        names = key_columns(end, key)
        parts = changes_between(snapshot, first, last, names)
        tables = [part.cast(schema) for part in parts]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def key_columns(table: Table, key: Sequence[str]) -> list[str]:
    """Give the names of columns as the table has them.

    Args:
        table: The table at the version whose columns the changes have.
        key: The names as they were stated.

    Raises:
        UnknownColumn: There is no such column.
    """
    names = []
    for name in key:
        column = table.snapshot.schema.field_by_path([name])
        if column is None:
            columns = ", ".join(table.snapshot.schema.arrow.names)
            raise UnknownColumn(column=name, columns=columns)
        names.append(str(column.field.name))
    return names


def told_changes(changes: pa.Table) -> Iterator[tuple[str, int, int, str]]:
    """Give type, version, time (microseconds of UTC) and the row as JSON of each change."""
    names = [name for name in changes.column_names if name not in _OF_COMMIT]
    kinds, versions = (changes[name].to_pylist() for name in _OF_COMMIT[:2])
    moments = changes[_OF_COMMIT[2]].cast(pa.int64()).to_pylist()
    rows = python_rows(changes.select(names))
    for kind, version, moment, row in zip(kinds, versions, moments, rows, strict=True):
        text = json.dumps(row, ensure_ascii=False, default=_text)
        yield kind, version, moment, text


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


# The range of commits that a change feed covers, as SQL states it: by versions, tags or times.

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
