"""A plain Lance dataset as a table without partitioning: one leaf, no manifest.

It is seen as a namespace of one spec without fields, so that planning, scans and residual filters
are the same code. Writes append to the main branch.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

import lance
import pyarrow as pa
from lance.fragment import write_fragments
from sqlglot import exp

from pennon.caching import version_identity
from pennon.errors import PathNotTable, TableVersionNotFound, WriteConflict
from pennon.leaf.schema.promotion import stream_schema
from pennon.leaf.schema.reconciliation import LeafField, leaf_fields
from pennon.leaf.write.deleted_rows import DeletedRows
from pennon.leaf.write.row_changes import deletions
from pennon.manifest import LeafQuery, Snapshot
from pennon.manifest.commits.exclusive_commit import exclusive
from pennon.predicate.dialect import DataFusion
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import FIELD_ID, NamespaceSchema, children_of, with_children

__all__ = [
    "PlainSnapshot",
    "append_plain",
    "change_plain_rows",
    "open_plain",
    "replace_plain",
    "stage_plain",
]

_OBJECT_ID: Final = "v1$dataset"
_NO_PARTITIONS = PartitionSpec(1, ())
_COMMIT: Final = "pennon.commit"
_COMMITTING: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class PlainSnapshot(Snapshot):
    """A plain dataset at one version."""

    @property
    def has_read_versions(self) -> bool:
        """The one version is pinned."""
        return True

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """There is none."""
        return ()

    @property
    def names_leaf_versions(self) -> bool:
        """The one version is pinned."""
        return True

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns in the types that Lance stores them in."""
        return self.manifest.schema

    @property
    def num_leaves(self) -> int:
        """The dataset is the one leaf."""
        return 1

    def leaves(
        self, condition: exp.Expr | None = None, flags: Sequence[exp.Expr] = ()
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
    options = dict(storage_options) or None
    try:
        latest = lance.dataset(location, storage_options=options)
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
                wanted=f"at version {version}",
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


def stage_plain(
    snapshot_location: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    storage_options: Mapping[str, str],
) -> tuple[list[str], int, int]:
    """Write rows as uncommitted fragments of a plain dataset.

    Returns:
        The fragments as texts, their rows and their bytes.
    """
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    fragments = write_fragments(
        pa.RecordBatchReader.from_batches(schema, counted()),
        snapshot_location,
        schema=schema,
        mode="append",
        storage_options=dict(storage_options) or None,
    )
    texts = [json.dumps(fragment.to_json()) for fragment in fragments if fragment.physical_rows]
    size = sum(file.file_size_bytes or 0 for each in fragments for file in each.files)
    return texts, rows, size


def append_plain(
    snapshot: PlainSnapshot, fragments: Sequence[str], commit_id: str | None = None
) -> int:
    """Commit staged fragments to the main branch; gives the new version.

    Args:
        snapshot: The version that the write is based on.
        fragments: What was staged.
        commit_id: The commit's id; one that was made already is not made again.

    Raises:
        WriteConflict: Another commit changed the schema or replaced the rows.
    """
    if not fragments:
        return snapshot.version
    parsed = [lance.FragmentMetadata.from_json(text) for text in fragments]
    return _committed(snapshot, lance.LanceOperation.Append(parsed), commit_id)


def replace_plain(
    snapshot: PlainSnapshot, fragments: Sequence[str], commit_id: str | None = None
) -> int:
    """Make the content of the main branch exactly the staged fragments; gives the new version.

    Args:
        snapshot: The version whose rows go.
        fragments: What was staged; none empties the dataset.
        commit_id: As for ``append_plain``.

    Raises:
        WriteConflict: Another commit changed rows that go.
    """
    removed = [fragment.fragment_id for fragment in snapshot.manifest.get_fragments()]
    if not removed:
        return append_plain(snapshot, fragments, commit_id)
    if not fragments:
        operation = lance.LanceOperation.Delete(
            updated_fragments=[], deleted_fragment_ids=removed, predicate="true"
        )
        return _committed(snapshot, operation, commit_id)
    new = [lance.FragmentMetadata.from_json(text) for text in fragments]
    update = lance.LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=[], new_fragments=new
    )
    return _committed(snapshot, update, commit_id)


def change_plain_rows(
    snapshot: PlainSnapshot,
    fragments: Sequence[str],
    deleted: Sequence[DeletedRows],
    commit_id: str | None = None,
) -> int:
    """Take single rows out of the main branch and add staged ones; gives the new version.

    The change is made of all rows of the version, so it stands only on that version.

    Args:
        snapshot: The version that the statement read.
        fragments: What was staged.
        deleted: What tasks report of the rows that go.
        commit_id: As for ``append_plain``.

    Raises:
        WriteConflict: Another commit came first.
    """
    dataset, options = snapshot.manifest, snapshot.storage_options
    rows = deleted[0].merged(deleted[1:]) if deleted else None
    updated, removed = deletions(dataset, rows)
    new = [lance.FragmentMetadata.from_json(text) for text in fragments]
    if not updated and not removed and not new:
        return snapshot.version
    update = lance.LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=updated, new_fragments=new
    )
    if not dataset.has_stable_row_ids:
        return _committed(snapshot, exclusive(dataset, update, options), commit_id)
    # New rows get their stable ids from Lance, which gives them to this kind of operation alone.
    made = None if commit_id is None else _made_before(snapshot, commit_id)
    latest = lance.dataset(snapshot.location, storage_options=dict(options) or None)
    if made is None and latest.version != snapshot.version:
        why = f"it is at version {latest.version}, and the statement read {snapshot.version}"
        raise WriteConflict(table=snapshot.location, why=why)
    return _committed(snapshot, update, commit_id)


def _committed(
    snapshot: PlainSnapshot,
    operation: lance.LanceOperation.BaseOperation,
    commit_id: str | None,
) -> int:
    with _COMMITTING:
        made = None if commit_id is None else _made_before(snapshot, commit_id)
        return _commit(snapshot, operation, commit_id) if made is None else made


def _made_before(snapshot: PlainSnapshot, commit_id: str) -> int | None:
    """Find the version that an earlier try of the commit has made."""
    options = dict(snapshot.storage_options) or None
    newest = lance.dataset(snapshot.location, storage_options=options)
    for version in range(newest.version, snapshot.version, -1):
        try:
            transaction = newest.read_transaction(version)
        except (OSError, ValueError):  # that version was cleaned up
            continue
        if transaction and (transaction.transaction_properties or {}).get(_COMMIT) == commit_id:
            return version
    return None


def _commit(
    snapshot: PlainSnapshot,
    operation: lance.LanceOperation.BaseOperation,
    commit_id: str | None,
) -> int:
    named = {} if commit_id is None else {_COMMIT: commit_id}
    try:
        committed = lance.LanceDataset.commit(
            snapshot.location,
            lance.Transaction(snapshot.version, operation, transaction_properties=named),
            storage_options=dict(snapshot.storage_options) or None,
        )
    except OSError as error:
        if "conflict" not in str(error).lower():
            raise
        why = "another commit changed the dataset in a way that does not commute"
        raise WriteConflict(table=snapshot.location, why=why) from error
    return int(committed.version)


def _version_at(dataset: lance.LanceDataset, location: str, timestamp: datetime) -> int:
    wanted = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    known = [each["version"] for each in dataset.versions() if _aware(each["timestamp"]) <= wanted]
    if not known:
        raise TableVersionNotFound(
            table=location, wanted=f"as of {wanted.isoformat()}", why="no version is that old"
        )
    return int(max(known))


def _aware(timestamp: datetime) -> datetime:
    return timestamp.astimezone(UTC)


def _schema(dataset: lance.LanceDataset) -> pa.Schema:
    fields = leaf_fields(dataset)
    every = [each for top in fields for each in top.walk()]
    stated = [each.stated_id for each in every]
    is_stated = None not in stated and len(set(stated)) == len(stated)
    return stream_schema(pa.schema([_numbered(field, is_stated=is_stated) for field in fields]))


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
    wanted = [exp.alias_(flag.copy(), f"flag_{at}") for at, flag in enumerate(flags)]
    query = exp.select(*columns, *wanted).from_("leaf")
    if condition is not None:
        query = query.where(condition.copy())
    from datafusion import SessionContext  # noqa: PLC0415 - a quarter of a second

    context = SessionContext()
    context.register_record_batches("leaf", [table.to_batches()])
    found = context.sql(query.sql(dialect=DataFusion)).to_arrow_table()
    flagged = [name for name in found.column_names if name.startswith("flag_")]
    kept = found.select(table.column_names).cast(table.schema)
    for name in flagged:
        kept = kept.append_column(name, found[name])
    return kept
