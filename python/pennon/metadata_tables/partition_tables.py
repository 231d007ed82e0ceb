"""``table.partitions``: one row per partition, from the manifest alone; no leaf is opened."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.leaf.dataset import leaf_indexes, leaf_uri, leaves_at_once, open_leaf
from pennon.leaf.read.metadata_columns import PARTITION, SPEC_VERSION
from pennon.manifest.column_bounds import BESIDE, column_bounds
from pennon.manifest.format.column_statistics import indexes_in, is_counted_type
from pennon.manifest.format.properties import index_definitions
from pennon.manifest.partition_struct import (
    partition_names,
    spec_versions,
    struct_array,
    struct_fields,
)
from pennon.manifest.versions.history import last_changes, versions_until
from pennon.metadata_tables.metadata_table import MetadataTable, Selection
from pennon.planning.binding.bind import bind_all
from pennon.planning.binding.bound_predicate import conjuncts
from pennon.planning.manifest_query import manifest_query
from pennon.predicate.parse import readable_predicates
from pennon.spec.schema import field_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.manifest import Snapshot
    from pennon.manifest.column_bounds import ColumnBounds
    from pennon.manifest.format.column_statistics import LeafIndex

__all__ = ["FILES", "INDEXES", "PARTITIONS"]

# ``readable_metrics``: column statistics of a partition or file, as Iceberg shows them.
#
# A struct with a struct per column that can be counted, fields of structs by their dotted names:
# ``value_count`` (NULLs among them), ``null_value_count``, ``lower_bound``, ``upper_bound``.
#
# NULL rules: a column of which nothing is known at the version that is read is NULL. Counts are
# NULL where rows went since they were counted; the bounds of these still hold. Bounds of long texts
# are cut.

READABLE_METRICS: Final = "readable_metrics"


def metrics_field(snapshot: Snapshot) -> list[pa.Field]:
    """Give the column, or nothing where no column of the table can be counted."""
    columns = [
        pa.field(name, _of_column(kind)) for name, (_, kind) in _counted_columns(snapshot).items()
    ]
    return [pa.field(READABLE_METRICS, pa.struct(columns))] if columns else []


def readable_metrics(snapshot: Snapshot, leaves: pa.Table) -> pa.StructArray:
    """Give the metrics of partitions.

    Args:
        snapshot: The namespace.
        leaves: Rows of ``Snapshot.leaves``, with what ``column_bounds.BESIDE`` names.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema" (metadata).
    """
    columns = _counted_columns(snapshot)
    bounds = column_bounds(snapshot, leaves, dict(columns.values()))
    rows = leaves["num_rows"].combine_chunks()
    metrics = [
        _metrics(bounds[number], rows)
        if number in bounds
        else pa.nulls(leaves.num_rows, _of_column(kind))
        for number, kind in columns.values()
    ]
    fields = [pa.field(name, metric.type) for name, metric in zip(columns, metrics, strict=True)]
    return pa.StructArray.from_arrays(metrics, fields=fields)


def metrics_of_parts(
    metrics: pa.StructArray, num_rows: pa.ChunkedArray, is_whole: pa.Array
) -> pa.StructArray:
    """Give the metrics of parts of leaves by those of the leaves.

    Args:
        metrics: Of the leaf that each part is of.
        num_rows: Rows of each part, where they are known.
        is_whole: Whether the part is all of its leaf; else its NULLs are not known, and its bounds
            are those of the leaf.

    Example:
        >>> kind = _of_column(pa.int32())
        >>> one = {"value_count": 9, "null_value_count": 2, "lower_bound": 1, "upper_bound": 5}
        >>> leaves = pa.array([{"n": one}], pa.struct({"n": kind}))
        >>> metrics_of_parts(leaves, pa.chunked_array([[4]]), pa.array([False]))[0]["n"].as_py()
        {'value_count': 4, 'null_value_count': None, 'lower_bound': 1, 'upper_bound': 5}
    """
    rows = num_rows.combine_chunks().cast(pa.int64())
    nothing = pa.scalar(None, pa.int64())
    columns = []
    for field in metrics.type:
        column = metrics.field(field.name)
        nulls = pc.if_else(is_whole, column.field("null_value_count"), nothing)
        parts = [rows, nulls, column.field("lower_bound"), column.field("upper_bound")]
        columns.append(
            pa.StructArray.from_arrays(parts, fields=list(field.type), mask=pc.is_null(column))
        )
    return pa.StructArray.from_arrays(columns, fields=list(metrics.type))


def _counted_columns(snapshot: Snapshot) -> dict[str, tuple[int, pa.DataType]]:
    return {
        ".".join(field.path): (field.id, field.field.type)
        for field in snapshot.schema.fields
        if is_counted_type(field.field.type)
    }


def _of_column(data_type: pa.DataType) -> pa.DataType:
    counts = {"value_count": pa.int64(), "null_value_count": pa.int64()}
    return pa.struct({**counts, "lower_bound": data_type, "upper_bound": data_type})


def _metrics(bounds: ColumnBounds, rows: pa.Array) -> pa.Array:
    is_counted = pc.is_valid(bounds.null_count)
    is_counted = pc.and_(is_counted, bounds.is_exact)
    nothing = pa.scalar(None, pa.int64())
    kind = _of_column(bounds.lower.type)
    return pa.StructArray.from_arrays(
        [
            rows.cast(pa.int64()),
            pc.if_else(is_counted, bounds.null_count, nothing),
            bounds.lower,
            bounds.upper,
        ],
        fields=list(kind),
        mask=pc.invert(bounds.is_known),
    )


# Partition tuples as one struct column over all spec versions, and predicates on it.
#
# A field that a leaf's spec lacks is NULL. The struct's fields are the field ids, in order of first
# use; a table without partition fields has no struct.

_PARTITION: Final = "partition"
LEAF_COLUMNS: Final = (pa.field("spec_version", pa.int32()), pa.field("leaf", pa.utf8()))


def tuple_fields(snapshot: Snapshot) -> list[pa.Field]:
    """Give the column ``partition``, or nothing where no spec has a field.

    Spec: "Partition Spec".
    """
    fields = struct_fields(snapshot)
    return [pa.field(_PARTITION, pa.struct(fields), nullable=False)] if fields else []


def leaf_columns(snapshot: Snapshot, leaves: pa.Table) -> dict[str, pa.ChunkedArray | pa.Array]:
    """Give ``partition``, ``spec_version`` and ``leaf`` of rows of ``Snapshot.leaves``."""
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        "spec_version": spec_versions(leaves),
        "leaf": leaves["location"],
    }
    fields = struct_fields(snapshot)
    if fields:
        columns[_PARTITION] = struct_array(leaves, fields)
    return columns


def tuple_condition(
    snapshot: Snapshot, schema: pa.Schema, predicates: Sequence[str]
) -> exp.Expr | None:
    """Write what predicates say of ``partition`` and ``spec_version`` as one on ``__manifest``.

    They are projected as those on a table's ``_partition`` and ``_spec_version`` are. In no known
    time zone: what depends on it leaves a day more, and what is not understood leaves no row out.

    Args:
        snapshot: The namespace.
        schema: The columns of the metadata table.
        predicates: Spark SQL on them.

    Returns:
        The condition; None where nothing can be left out.

    Spec: "Partition Pruning".
    """
    tuple_columns = {
        _PARTITION: PARTITION.with_type(pa.struct(struct_fields(snapshot))),
        SPEC_VERSION.name.removeprefix("_"): SPEC_VERSION,
    }
    columns = pa.schema([tuple_columns.get(column.name, column) for column in schema])
    trees = [
        tree.transform(_as_metadata_column, tuple_columns)
        for tree in readable_predicates(predicates)
    ]
    bound = bind_all(trees, columns, time_zone="")
    return manifest_query(snapshot, conjuncts(bound)).condition


def _as_metadata_column(
    node: exp.Expression, tuple_columns: Mapping[str, pa.Field]
) -> exp.Expression:
    if isinstance(node, exp.Column):
        first = node.parts[0]
        if first.name.lower() in tuple_columns:
            first.set("this", tuple_columns[first.name.lower()].name)
    return node


# ``table.files``: one row per fragment of each leaf, with its data files.
#
# Leaves are opened at the versions that the snapshot names, a few at a time. ``readable_metrics``
# are those of the fragment where its leaf has no other; else bounds are those of the whole leaf,
# which hold for each of its fragments, and NULLs are not counted.

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


def _files_schema(snapshot: Snapshot) -> pa.Schema:
    metrics = metrics_field(snapshot) if snapshot.layout.records_commits else []
    return pa.schema([*tuple_fields(snapshot), *LEAF_COLUMNS, *_OF_FRAGMENTS, *metrics])


def _files_rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    condition = tuple_condition(snapshot, _files_schema(snapshot), selection.predicates)
    has_metrics = READABLE_METRICS in selection.columns
    leaves = snapshot.leaves(condition, (), BESIDE if has_metrics else ()).table
    named = pa.table(leaf_columns(snapshot, leaves))
    metrics = readable_metrics(snapshot, leaves) if has_metrics else None

    def fragments(leaf: Mapping[str, object]) -> list[dict[str, object]]:
        return _fragments(snapshot, str(leaf["location"]), leaf["read_version"])

    with ThreadPoolExecutor(leaves_at_once(snapshot.location, on_disk=_THREADS)) as pool:
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


FILES = MetadataTable("files", _files_schema, _files_rows)


_COUNTS = {
    "record_count": "num_rows",
    "file_count": "num_fragments",
    "total_data_file_size_in_bytes": "num_bytes",
}
# As Iceberg calls them. They need a look at every version that is left.
_LAST_CHANGE = (
    pa.field("last_updated_at", pa.timestamp("us", "UTC")),
    pa.field("last_updated_snapshot_id", pa.int64()),
)


def _schema(snapshot: Snapshot) -> pa.Schema:
    counts = [pa.field(name, pa.int64()) for name in _COUNTS]
    others = [pa.field("read_version", pa.uint64()), pa.field("name", pa.utf8())]
    metrics = metrics_field(snapshot) if snapshot.layout.records_commits else []
    own = [*tuple_fields(snapshot), *LEAF_COLUMNS, *counts, *others, *_LAST_CHANGE]
    return pa.schema([*own, *metrics])


def _rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    condition = tuple_condition(snapshot, _schema(snapshot), selection.predicates)
    has_metrics = READABLE_METRICS in selection.columns
    leaves = snapshot.leaves(condition, (), BESIDE if has_metrics else ()).table
    columns = leaf_columns(snapshot, leaves)
    columns |= {name: leaves[counted] for name, counted in _COUNTS.items()}
    columns["read_version"] = leaves["read_version"]
    if "name" in selection.columns:
        columns["name"] = partition_names(snapshot, leaves)
    if {column.name for column in _LAST_CHANGE} & {*selection.columns}:
        columns |= _last_change(snapshot, leaves)
    if has_metrics:
        columns[READABLE_METRICS] = readable_metrics(snapshot, leaves)
    yield pa.table(columns)


def _last_change(snapshot: Snapshot, leaves: pa.Table) -> dict[str, pa.Array]:
    """Tell at which version each partition became what it is; NULL where that is not known."""
    versions: list[int | None] = [None] * len(leaves)
    if snapshot.layout.records_commits:
        changes = last_changes(snapshot)
        versions = list(map(changes.get, leaves["object_id"].to_pylist()))
    listed = versions_until(snapshot) if any(versions) else None
    times: dict[int | None, object] = {}
    if listed is not None:
        times = dict(zip(*(column.to_pylist() for column in listed.columns), strict=True))
    at, by = _LAST_CHANGE
    return {
        at.name: pa.array([times.get(version) for version in versions], at.type),
        by.name: pa.array(versions, by.type),
    }


PARTITIONS = MetadataTable("partitions", _schema, _rows)


# ``table.indexes``: one row per partition and index, which is NULL in no column but those of sizes.
#
# What stands in the manifest is not asked of the leaf. In weak mode, and of a plain dataset, the
# leaf alone knows.

_OF_INDEXES: Final = pa.schema(
    {
        "index": pa.utf8(),
        "type": pa.utf8(),
        "column": pa.utf8(),
        "rows_indexed": pa.int64(),
        "rows_not_indexed": pa.int64(),
        "size_in_bytes": pa.int64(),
        "segments": pa.int32(),
    }
)
_ASKED_OF_LEAVES: Final = ("location", "read_version", "num_rows", "metadata")


def _indexes_schema(snapshot: Snapshot) -> pa.Schema:
    return pa.schema([*tuple_fields(snapshot), *LEAF_COLUMNS, *_OF_INDEXES])


def _indexes_rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    condition = tuple_condition(snapshot, _indexes_schema(snapshot), selection.predicates)
    beside = ("metadata",) if snapshot.layout.records_commits else ()
    leaves = snapshot.leaves(condition, (), beside).table
    has_manifest = snapshot.layout.has_manifest
    defined = index_definitions(snapshot.metadata) if has_manifest else {}
    names = {field_id_of(field): field.name for field in snapshot.schema.arrow}
    places: list[int] = []
    rows: list[dict[str, object]] = []
    asked = [name for name in _ASKED_OF_LEAVES if name in leaves.column_names]
    for at, leaf in enumerate(leaves.select(asked).to_pylist()):
        present = {one.name: one for one in _leaf_indexes(snapshot, leaf)}
        for name in dict.fromkeys((*defined, *present)):
            one, definition = present.get(name), defined.get(name)
            num_rows = leaf["num_rows"]
            indexed = 0 if one is None else one.rows
            places.append(at)
            rows.append(
                {
                    "index": name,
                    "type": definition.type if definition else one.type if one else None,
                    "column": names.get(definition.field_id) if definition else None,
                    "rows_indexed": indexed,
                    "rows_not_indexed": None if num_rows is None else num_rows - indexed,
                    "size_in_bytes": 0 if one is None else one.num_bytes,
                    "segments": 0 if one is None else one.segments,
                }
            )
    table = pa.table(leaf_columns(snapshot, leaves)).take(pa.array(places, pa.int64()))
    of_indexes = pa.Table.from_pylist(rows, _OF_INDEXES)
    for name in _OF_INDEXES.names:
        table = table.append_column(_OF_INDEXES.field(name), of_indexes[name])
    yield table


def _leaf_indexes(snapshot: Snapshot, leaf: Mapping[str, object]) -> tuple[LeafIndex, ...]:
    version = leaf["read_version"]
    stated = version if isinstance(version, int) else None
    text = leaf.get("metadata")
    if snapshot.names_leaf_versions and isinstance(text, str):
        known = indexes_in(text, stated)
        if known is not None:
            return known
    root, options = snapshot.location, snapshot.storage_options
    return leaf_indexes(open_leaf(root, str(leaf["location"]), stated, options))


INDEXES = MetadataTable("indexes", _indexes_schema, _indexes_rows)
