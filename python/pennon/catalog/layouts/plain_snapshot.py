"""A snapshot of a plain Lance dataset: one leaf, no manifest, no partitioning.

It is seen as a namespace of one spec without fields, so that planning, scans and residual filters
are the same code; ``catalog/layouts/plain_table.py`` writes to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar, Final

import lance
import pyarrow as pa
from sqlglot import exp

from pennon.caching import version_identity
from pennon.caching.lance_sessions import opening
from pennon.errors import PathNotTable, TableVersionNotFound
from pennon.leaf.schema.reconciliation import LeafField, leaf_fields
from pennon.manifest import LeafQuery, Snapshot
from pennon.manifest.dataset.storage import VersionTimes
from pennon.manifest.leaves.leaf_rows import MayMatch
from pennon.manifest.table_layout import TableLayout
from pennon.predicate.dialect import DataFusion
from pennon.spec.arrow_json import storage_field
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import FIELD_ID, NamespaceSchema, children_of, with_children

__all__ = [
    "PlainSnapshot",
    "open_plain",
]

_OBJECT_ID: Final = "v1$dataset"
_NO_PARTITIONS = PartitionSpec(1, ())


@dataclass(frozen=True, slots=True)
class PlainSnapshot(Snapshot):
    """A plain dataset at one version."""

    layout: ClassVar[TableLayout] = TableLayout.PLAIN

    @property
    def has_read_version_column(self) -> bool:
        """The one version is pinned."""
        return True

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """There is none."""
        return ()

    def at_version(self, version: int) -> Snapshot:
        """Open another version of the same dataset."""
        snapshot = open_plain(self.location, version, None, self.storage_options)
        if snapshot is None:
            raise PathNotTable(path=self.location, why="it was dropped meanwhile")
        return snapshot

    def _opened_again(self) -> Snapshot:
        return self.at_version(self.version)

    @property
    def names_leaf_versions(self) -> bool:
        """The one version is pinned."""
        return True

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns in the types that Lance stores them in."""
        return pa.schema([storage_field(column) for column in self.manifest.schema])

    @property
    def num_leaves(self) -> int:
        """The dataset is the one leaf."""
        return 1

    def leaves(
        self,
        condition: exp.Expr | None = None,
        flags: Sequence[exp.Expr] = (),
        beside: Sequence[str] = (),  # noqa: ARG002 - there is no manifest with more of it
        may_match: MayMatch | None = None,  # noqa: ARG002 - nor with statistics of columns
    ) -> LeafQuery:
        """Give the one leaf, or none where the condition is false."""
        row = {
            "object_id": pa.array([_OBJECT_ID]),
            "location": pa.array([self.location]),
            "read_version": pa.array([self.version], pa.uint64()),
            "num_rows": pa.array([self.manifest.count_rows()], pa.int64()),
            "num_bytes": pa.array([_size(self.manifest)], pa.int64()),
            "num_fragments": pa.array([len(self.manifest.get_fragments())], pa.int64()),
        }
        table = pa.table(row)
        if condition is not None or flags:
            table = _select(table, condition, flags)
        return LeafQuery("none, the table is a plain Lance dataset", table)


def open_plain(
    location: str,
    version: int | None,
    timestamp: datetime | None,
    storage_options: Mapping[str, str],
) -> PlainSnapshot | None:
    """Open a plain Lance dataset; None where there is none.

    Args:
        location: Path or URL.
        version: Version of the main branch; None for the newest.
        timestamp: The last version at or before this time.
        storage_options: Given to Lance.

    Raises:
        TableVersionNotFound: There is no such version.
        PathNotTable: What is there is no readable dataset.
    """
    try:
        latest = lance.dataset(**opening(location, storage_options))
    except (ValueError, FileNotFoundError) as error:
        if "not found" in str(error).lower() or "does not exist" in str(error).lower():
            return None
        raise PathNotTable(path=location, why="Lance cannot read it") from error
    if version is None and timestamp is not None:
        version = _version_at(latest, location, timestamp)
    if version is not None and version != latest.version:
        try:
            latest = latest.checkout_version(version)
        except (ValueError, OSError) as error:
            raise TableVersionNotFound(
                table=location,
                asked=f"at version {version}",
                why=f"its newest version is {latest.version}",
            ) from error
    return PlainSnapshot(
        location=location,
        version=latest.version,
        schema=NamespaceSchema(_schema(latest)),
        specs=MappingProxyType({1: _NO_PARTITIONS}),
        is_strong=False,
        properties=MappingProxyType({}),
        metadata=MappingProxyType({}),
        storage_options=storage_options,
        identity=version_identity(latest),
        manifest=latest,
    )


def _version_at(dataset: lance.LanceDataset, location: str, timestamp: datetime) -> int:
    times = VersionTimes.of(dataset.versions())
    version = times.at(timestamp)
    if version is None:
        asked = f"as of {timestamp.isoformat()}"
        raise TableVersionNotFound(table=location, asked=asked, why=times.why_none(timestamp))
    return version


def _schema(dataset: lance.LanceDataset) -> pa.Schema:
    fields = leaf_fields(dataset)
    every = [node for top in fields for node in top.walk()]
    stated = [leaf_field.stated_id for leaf_field in every]
    is_stated = None not in stated and len(set(stated)) == len(stated)
    return pa.schema([_numbered(field, is_stated=is_stated) for field in fields])


def _numbered(field: LeafField, *, is_stated: bool) -> pa.Field:
    below = children_of(field.arrow.type)
    children = [_numbered(child, is_stated=is_stated) for child in field.children[: len(below)]]
    arrow = field.arrow
    if children and len(children) == len(below):
        arrow = arrow.with_type(with_children(arrow.type, children))
    number = field.stated_id if is_stated else field.number
    return arrow.with_metadata({**(arrow.metadata or {}), FIELD_ID: str(number).encode()})


def _size(dataset: lance.LanceDataset) -> int | None:
    sizes = [
        file.file_size_bytes
        for fragment in dataset.get_fragments()
        for file in fragment.data_files()
    ]
    return None if any(size is None for size in sizes) else sum(filter(None, sizes))


def _select(table: pa.Table, condition: exp.Expr | None, flags: Sequence[exp.Expr]) -> pa.Table:
    columns = [exp.column(name) for name in table.column_names]
    selected = [exp.alias_(flag.copy(), f"flag_{at}") for at, flag in enumerate(flags)]
    query = exp.select(*columns, *selected).from_("leaf")
    if condition is not None:
        query = query.where(condition.copy())
    from datafusion import SessionContext  # noqa: PLC0415 - a quarter of a second

    context = SessionContext()
    context.register_record_batches("leaf", [table.to_batches()])
    rows = context.sql(query.sql(dialect=DataFusion)).to_arrow_table()
    flagged = [name for name in rows.column_names if name.startswith("flag_")]
    kept = rows.select(table.column_names).cast(table.schema)
    for name in flagged:
        kept = kept.append_column(name, rows[name])
    return kept
