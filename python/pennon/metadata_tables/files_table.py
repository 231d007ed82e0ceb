"""``table.files``: one row per fragment of each leaf, with its data files.

Leaves are opened at the versions that the snapshot names, a few at a time. ``readable_metrics``
are those of the fragment where its leaf has no other; else bounds are those of the whole leaf,
which hold for each of its fragments, and NULLs are not counted.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.leaf.dataset import leaf_uri, open_leaf
from pennon.manifest.column_bounds import BESIDE
from pennon.metadata_tables.metadata_table import MetadataTable, Selection
from pennon.metadata_tables.partition_tuple import (
    LEAF_COLUMNS,
    leaf_columns,
    tuple_condition,
    tuple_fields,
)
from pennon.metadata_tables.readable_metrics import (
    READABLE_METRICS,
    metrics_field,
    metrics_of_parts,
    readable_metrics,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pennon.manifest import Snapshot

__all__ = ["FILES"]

_THREADS = 8
_LEAVES_AT_ONCE = 512
_OF_FRAGMENTS = pa.schema(
    {
        "fragment_id": pa.int64(),
        "file_paths": pa.list_(pa.utf8()),
        "record_count": pa.int64(),
        "deleted_record_count": pa.int64(),
        "file_size_in_bytes": pa.int64(),
    }
)


def _schema(snapshot: Snapshot) -> pa.Schema:
    metrics = metrics_field(snapshot) if snapshot.layout.records_commits else []
    return pa.schema([*tuple_fields(snapshot), *LEAF_COLUMNS, *_OF_FRAGMENTS, *metrics])


def _rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    condition = tuple_condition(snapshot, _schema(snapshot), selection.predicates)
    has_metrics = READABLE_METRICS in selection.columns
    leaves = snapshot.leaves(condition, (), BESIDE if has_metrics else ()).table
    named = pa.table(leaf_columns(snapshot, leaves))
    metrics = readable_metrics(snapshot, leaves) if has_metrics else None

    def fragments(leaf: Mapping[str, object]) -> list[dict[str, object]]:
        return _fragments(snapshot, str(leaf["location"]), leaf["read_version"])

    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(leaves), _LEAVES_AT_ONCE):
            some = leaves.slice(start, _LEAVES_AT_ONCE).select(["location", "read_version"])
            opened = list(pool.map(fragments, some.to_pylist()))
            of_leaf = [start + at for at, files in enumerate(opened) for _ in files]
            rows = [row for files in opened for row in files]
            of_fragments = pa.Table.from_pylist(rows, _OF_FRAGMENTS)
            taken = named.take(pa.array(of_leaf, pa.int64()))
            for name in _OF_FRAGMENTS.names:
                taken = taken.append_column(_OF_FRAGMENTS.field(name), of_fragments[name])
            if metrics is not None:
                is_whole = pa.array(
                    [len(files) == 1 for files in opened for _ in files], pa.bool_()
                )
                of_parts = metrics_of_parts(
                    metrics.take(pa.array(of_leaf, pa.int64())),
                    of_fragments["record_count"],
                    is_whole,
                )
                taken = taken.append_column(READABLE_METRICS, of_parts)
            yield taken


def _fragments(snapshot: Snapshot, location: str, version: object) -> list[dict[str, object]]:
    leaf_version = version if isinstance(version, int) else None
    leaf = open_leaf(snapshot.location, location, leaf_version, snapshot.storage_options)
    folder = leaf_uri(snapshot.location, location)
    return [_row(folder, fragment) for fragment in leaf.get_fragments()]


def _row(folder: str, fragment: object) -> dict[str, object]:
    metadata = fragment.metadata  # type: ignore[attr-defined] # pylance has no types
    sizes = [file.file_size_bytes for file in metadata.files]
    return {
        "fragment_id": metadata.id,
        "file_paths": [f"{folder}/data/{file.path}" for file in metadata.files],
        "record_count": metadata.num_rows,
        "deleted_record_count": metadata.num_deletions,
        "file_size_in_bytes": None if None in sizes else sum(sizes),
    }


FILES = MetadataTable("files", _schema, _rows)
