"""Computes the column statistics that the manifest lacks.

Writes count what passes them. What is left: leaves that another writer moved on or that were
adopted, columns that were not counted then, bounds that deleted rows left behind, and how many
values a column has, which no write knows of the rows that are there already.

The rows are read beside every write, and the commit yields: a leaf that moves on meanwhile is left
as it is, and a write that meets the commit is made again on top of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import LeafMissing, UnknownColumn
from pennon.leaf import LeafSource
from pennon.leaf.write.incoming_rows import ColumnCounting, column_at, counted_fields
from pennon.leaf.write.leaf_commit import LeafCommit
from pennon.maintenance.calls.procedure_declaration import Column, Procedure, columns_of, count
from pennon.maintenance.leaves.chosen_leaves import chosen_leaves
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.manifest import ConcurrentChange, LeafChange, ManifestCommitted, Snapshot
from pennon.manifest.commits.manifest_commit import commit_statistics, wait_for_others
from pennon.manifest.commits.root_change import schema_id
from pennon.manifest.format.column_statistics import LeafStatistics, order_at
from pennon.manifest.format.rows import CommitIdentity, CommitRecord
from pennon.spec.column_names import STATISTICS_COLUMNS
from pennon.transaction.staging.staged import LeafState, leaf_states, partition_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.manifest import StorageOptions

__all__ = ["ANALYZE", "Analyzed", "analyze"]

# Estimates the number of distinct values of a column in one pass and a few kilobytes.
#
# The values' hashes are spread evenly, so the 1,024 smallest give an estimate of how many there
# are: within about six in a hundred, and exactly where there are fewer. NaN is one value, and so
# are both zeros.

_KEPT: Final = 1_024
_LARGEST: Final = 2.0**64
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_START: Final = np.uint64(0x9E3779B97F4A7C15)


class DistinctValues:
    """The values that were seen.

    Example:
        >>> seen = DistinctValues()
        >>> seen.observe(pa.array([3, 3, None, 1]))
        >>> seen.count
        2
    """

    def __init__(self) -> None:
        self._smallest = np.zeros(0, dtype=np.uint64)

    def observe(self, column: pa.Array) -> None:
        """Count values.

        Args:
            column: Of a type that has statistics; NULL is no value.
        """
        values = pc.unique(column.drop_null())
        hashes = _hashes(values)
        if len(self._smallest) == _KEPT:
            hashes = hashes[hashes < self._smallest[-1]]
        if len(hashes):
            self._smallest = np.union1d(self._smallest, hashes)[:_KEPT]

    @property
    def count(self) -> int:
        """About how many different values were seen."""
        if len(self._smallest) < _KEPT:
            return len(self._smallest)
        return round((_KEPT - 1) / (float(self._smallest[-1]) / _LARGEST))


def _hashes(values: pa.Array) -> np.ndarray:
    data_type = values.type
    if pa.types.is_floating(data_type):
        floats = values.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        bits = floats.view(np.uint64)
    elif pa.types.is_date32(data_type):
        bits = values.cast(pa.int32()).to_numpy().astype(np.int64).view(np.uint64)
    elif pa.types.is_timestamp(data_type):
        bits = values.cast(pa.int64()).to_numpy().view(np.uint64)
    elif pa.types.is_signed_integer(data_type):
        bits = values.to_numpy().astype(np.int64).view(np.uint64)
    else:
        hashes = np.array([hash(value) for value in values.to_pylist()], dtype=np.int64)
        bits = hashes.view(np.uint64)
    return np.asarray(np.unique(_mixed(bits)))


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Spread neighbouring numbers over all of 64 bits (the finaliser of SplitMix64)."""
    mixed = bits + _START
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FACTORS[0]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _FACTORS[1]
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


_LEAVES_AT_ONCE: Final = 100
_ATTEMPTS: Final = 10
Fields = dict[tuple[str, ...], tuple[int, pa.DataType]]


@dataclass(slots=True)
class Analyzed:
    """What was counted.

    Args:
        partitions: The partitions whose statistics are complete now and were not before.
        num_rows: The rows that were read for it.
        version: The version of the table afterwards.
        notes: What was left alone, and why.
    """

    partitions: Annotated[list[str], count("partitions")] = field(default_factory=list)
    num_rows: Annotated[int, Column("rows")] = 0
    version: int = 0
    notes: list[str] = field(default_factory=list)


def analyze(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    columns: Sequence[str] = (),
    where: str | None = None,
    time_zone: str = "UTC",
    progress: Progress = no_progress,
) -> Analyzed:
    """Count the statistics of columns that are missing, are bounds only, or lack distinct values.

    Args:
        location: The namespace, in strong mode.
        storage_options: Given to Lance.
        columns: Names of columns, fields of structs with dots; none for those that
            ``write.statistics.columns`` says.
        where: A Spark SQL condition: only partitions that may have a row that satisfies it.
        time_zone: Of times in it without a zone, as Spark's session has one.
        progress: Called with how far it is.

    Raises:
        UnknownColumn: A name is none of a column that can be counted.
        NotPartitionedNamespace: It is none.
        StorageFailure: The storage refused.

    Example:
        >>> analyze("/data/lake/orders", columns=["customer_id"])  # doctest: +SKIP

    Spec: "Manifest Table Schema" (metadata).
    """
    snapshot = Snapshot.open(location, storage_options=storage_options)
    done = Analyzed(version=snapshot.version)
    if not snapshot.is_strong:
        done.notes.append("the table is in weak mode: anyone may move its leaves on at any time")
        return done
    fields = _chosen_fields(snapshot, columns)
    chosen = chosen_leaves(snapshot, where, time_zone)
    for at in range(0, len(chosen), _LEAVES_AT_ONCE):
        some = chosen[at : at + _LEAVES_AT_ONCE]
        states = leaf_states(snapshot, some)
        counted = [
            entry
            for state in states.values()
            if _lacks(state, fields) and (entry := _counted(snapshot, state, fields, done))
        ]
        _commit(snapshot, counted, done)
        progress("leaves analyzed", at + len(some), len(chosen))
    return done


ANALYZE: Final = Procedure(
    analyze,
    "Count the statistics of columns that the manifest lacks.",
    columns_of(Analyzed),
    command="analyze",
    said="{location} is at version {version}: {partitions} partitions with {rows} rows analyzed",
)


def _chosen_fields(snapshot: Snapshot, columns: Sequence[str]) -> Fields:
    if not columns:
        return counted_fields(snapshot.properties, snapshot.schema)
    first_columns = counted_fields(
        {STATISTICS_COLUMNS: str(len(snapshot.schema.fields))}, snapshot.schema
    )
    fields: Fields = {}
    for name in columns:
        counted = counted_fields({STATISTICS_COLUMNS: name}, snapshot.schema)
        if not counted:
            named = ", ".join(".".join(path) for path in first_columns)
            raise UnknownColumn(column=name, columns=named)
        fields.update(counted)
    return fields


def _lacks(state: LeafState, fields: Fields) -> bool:
    """Whether something of a leaf's columns is not known."""
    if state.read_version is None or state.is_elsewhere or not fields:
        return False
    statistics_of_leaf = state.columns
    if statistics_of_leaf is None or not statistics_of_leaf.is_exact:
        return True
    statistics = (statistics_of_leaf.columns.get(number) for number, _ in fields.values())
    return any(column is None or column.distinct_count is None for column in statistics)


def _counted(
    snapshot: Snapshot, state: LeafState, fields: Fields, done: Analyzed
) -> LeafChange | None:
    """Read a leaf's columns at the version that the manifest names."""
    try:
        dataset = state.opened(snapshot)
    except LeafMissing as error:
        done.notes.append(error.message)
        return None
    exact = {} if state.columns is None or not state.columns.is_exact else state.columns.columns
    every = counted_fields({STATISTICS_COLUMNS: str(len(snapshot.schema.fields))}, snapshot.schema)
    # Bounds that are none any more are counted again, whoever has asked for them first.
    stale = set() if state.columns is None else set(state.columns.columns) - set(exact)
    read = {path: field for path, field in every.items() if field[0] in stale} | fields
    counting, distinct = ColumnCounting(read), {path: DistinctValues() for path in read}
    names = list(dict.fromkeys(path[0] for path in read))
    columns = pa.schema([snapshot.schema.arrow.field(name) for name in names])
    for rows in LeafSource(dataset).batches(columns):
        counting.observe(rows)
        for path, values in distinct.items():
            values.observe(column_at(rows, path))
    counts = {read[path][0]: values.count for path, values in distinct.items()}
    new = {
        number: replace(column, distinct_count=counts[number])
        for number, column in counting.statistics.columns.items()
    }
    size = LeafCommit.of(dataset)
    done.num_rows += size.num_rows
    version = int(dataset.version)
    return LeafChange(
        state.object_id,
        state.location,
        state.values,
        version,
        size.num_rows,
        size.num_bytes,
        size.num_fragments,
        order_at(state.write_order, version),
        LeafStatistics({**exact, **new}),
    )


def _commit(snapshot: Snapshot, counted: Sequence[LeafChange], done: Analyzed) -> None:
    """Record what was counted of the leaves that are still where they were."""
    location, options = snapshot.location, snapshot.storage_options
    for attempt in range(_ATTEMPTS):
        newest = Snapshot.open(location, storage_options=options)
        now = leaf_states(newest, [leaf_change.object_id for leaf_change in counted])
        left = [leaf_change for leaf_change in counted if _stands(leaf_change, now)]
        if not left:
            return
        record = CommitRecord(
            CommitIdentity.fresh(),
            "analyze",
            newest.version,
            newest.current_spec.spec_version,
            schema_id(newest.metadata),
            partitions=len(left),
            added_rows=0,
            removed_rows=0,
            made_at=int(time.time()),
        )
        match commit_statistics(newest, left, record):
            case ManifestCommitted(version):
                done.version = version
                done.partitions += [partition_text(leaf_change.values) for leaf_change in left]
                return
            case ConcurrentChange():
                wait_for_others(attempt)
    done.notes.append(f"{len(counted)} partitions are left alone: other commits come first")


def _stands(counted: LeafChange, now: Mapping[str, LeafState]) -> bool:
    state = now.get(counted.object_id)
    return (
        state is not None
        and state.read_version == counted.read_version
        and state.location == counted.location
    )
