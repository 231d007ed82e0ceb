"""A table as SQL names it: a partitioned namespace or a plain dataset at one version."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import lance

from pennon.catalog.columns.spark_types import spark_schema
from pennon.catalog.configured_catalog import Catalog, is_local, is_path, plain_path
from pennon.catalog.directory import Directory
from pennon.catalog.partitioning import partitioning
from pennon.catalog.plain_dataset import PlainSnapshot, open_plain
from pennon.draft import open_snapshot
from pennon.errors import (
    NamespaceHasNoManifest,
    PathNotTable,
    TableNotFound,
    TableVersionNotFound,
)
from pennon.manifest import Snapshot

if TYPE_CHECKING:
    from pennon.catalog.directory import Name

__all__ = ["Table", "load", "reopen"]

_LAST_VERSION = (1 << 64) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Table:
    """A table at one version.

    Args:
        name: Its full name, or its path.
        identifier: The parts below the catalog.
        snapshot: What is read.
        is_managed: Whether the catalog chose its location, so that no DDL need state it.
    """

    name: str
    identifier: Name
    snapshot: Snapshot
    is_managed: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is a plain Lance dataset."""
        return isinstance(self.snapshot, PlainSnapshot)

    @property
    def identity(self) -> str:
        """What tells the table from another one that was at its location before."""
        if isinstance(self.snapshot, PlainSnapshot):
            return self.snapshot.identity
        # The salt is a secret, and drawn anew for every namespace.
        return hashlib.blake2b(self.snapshot.salt, digest_size=8).hexdigest()

    @property
    def schema(self) -> dict[str, object]:
        """The columns as the JSON object of a Spark StructType."""
        return spark_schema(self.snapshot.schema.arrow)

    @property
    def partitioning(self) -> tuple[dict[str, object], ...]:
        """The current spec as Spark's transforms."""
        return partitioning(self.snapshot.current_spec, self.snapshot.schema)

    @property
    def properties(self) -> dict[str, str]:
        """The user's properties, and Spark's reserved ones: comment, provider, location."""
        shown = {
            **self.snapshot.properties,
            "provider": "lance",
            "location": self.snapshot.location,
        }
        if self.is_managed:
            shown["is_managed_location"] = "true"
        comment = None if self.is_plain else self.snapshot.comment
        return shown if comment is None else {**shown, "comment": comment}


def load(
    catalog: Catalog,
    identifier: Name,
    version: str | None = None,
    timestamp_micros: int | None = None,
) -> Table:
    """Load a table by its name or its path, now or at an earlier version.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name, or one path or URL.
        version: VERSION AS OF, a version of ``__manifest`` (of the dataset for a plain one).
        timestamp_micros: TIMESTAMP AS OF, in microseconds since the epoch.

    Raises:
        TableNotFound: There is none.
        PathNotTable: The path holds something else.
        TableVersionNotFound: The version is no number, or a plain dataset lacks it.
    """
    number = _number(catalog, identifier, version)
    timestamp = None
    if timestamp_micros is not None:
        timestamp = _EPOCH + timedelta(microseconds=timestamp_micros)
    if len(identifier) == 1 and is_path(identifier[0]):
        location = plain_path(identifier[0]).rstrip("/")
        snapshot = _open(location, number, timestamp, catalog.storage)
        if snapshot is None:
            raise TableNotFound(table=location, near="nothing readable is there")
        return Table(location, identifier, snapshot)
    registration = Directory(catalog).found(identifier)
    name = catalog.full_name(identifier)
    found: Snapshot | None
    if registration.is_partitioned:
        found = open_snapshot(registration.location, number, timestamp, catalog.storage)
    else:
        found = open_plain(registration.location, number, timestamp, catalog.storage)
    if found is None:
        why = f"the catalog names {registration.location}, and no dataset is there"
        raise TableNotFound(table=name, near=why)
    return Table(name, identifier, found, catalog.is_below_root(found.location))


def reopen(location: str, version: int, storage: Mapping[str, str], *, is_plain: bool) -> Snapshot:
    """Open the snapshot that an earlier load pinned."""
    if not is_plain:
        return open_snapshot(location, version, None, storage)
    snapshot = open_plain(location, version, None, storage)
    if snapshot is None:
        raise TableNotFound(table=location, near="it was dropped meanwhile")
    return snapshot


def _open(
    location: str, version: int | None, timestamp: datetime | None, storage: Mapping[str, str]
) -> Snapshot | None:
    if is_local(location) and Path(location).is_file():
        raise PathNotTable(path=location, why="it is a file and not a folder")
    try:
        return open_snapshot(location, version, timestamp, storage)
    except NamespaceHasNoManifest as error:
        try:
            return open_plain(location, version, timestamp, storage)
        except OSError:
            raise PathNotTable(path=location, why="it has no __manifest") from error


def _number(catalog: Catalog, identifier: Name, version: str | None) -> int | None:
    if version is None:
        return None
    if not version.strip().isdecimal():
        raise TableVersionNotFound(
            table=catalog.full_name(identifier),
            wanted=f"at version {version!r}",
            why="versions are whole numbers",
        )
    number = int(version)
    if number > _LAST_VERSION:
        raise TableVersionNotFound(
            table=catalog.full_name(identifier),
            wanted=f"at version {version}",
            why="versions are numbers of 64 bits",
        )
    return number


def drop_dataset(location: str, storage: Mapping[str, str]) -> None:
    """Delete a dataset's folder."""
    lance.LanceDataset.drop(location, storage_options=dict(storage) or None)
