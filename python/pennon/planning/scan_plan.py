"""Plans a scan: the partitions that a predicate needs, and the residual filter of each.

A plan opens no leaf in strong mode: versions and statistics stand in the manifest. A leaf whose
version the manifest does not name (weak mode) is resolved once and pinned.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Final, overload

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import Cache, combined_identity
from pennon.errors import UnknownColumn
from pennon.leaf.dataset import ResolvedLeaf, leaves_at_once, resolve_reference
from pennon.manifest.column_bounds import BESIDE
from pennon.manifest.format.column_statistics import IS_COUNTED, RECORDED_ORDER
from pennon.manifest.format.names import spec_version_of
from pennon.manifest.format.rows import PARTITION_PREFIX
from pennon.notebook import Bar, html_table
from pennon.planning.binding.bind import bind, without_contradiction
from pennon.planning.binding.bound_predicate import (
    FALSE,
    TRUE,
    BoundPredicate,
    Compared,
    all_of,
    conjuncts,
    fixed_values,
)
from pennon.planning.binding.source_columns import resolve_column
from pennon.planning.manifest_query import (
    NO_RESIDUAL,
    exact_and_whole,
    exact_filter,
    manifest_query,
    row_condition,
)
from pennon.planning.projection.possible_partitions import known_columns
from pennon.planning.statistics_pruning import has_possible_row, may_match_at, may_prune
from pennon.predicate.condition import Operator
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate
from pennon.spec.column_names import column_path, python_rows
from pennon.spec.write_properties import WriteOrder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pennon.manifest.snapshot import Snapshot
    from pennon.spec.write_properties import OrderColumn

__all__ = ["known_order", "mergeable_scans"]

# Pins the leaf versions that the manifest leaves open: the newest one, a branch, a tag.
#
# It is done once per query, so that all its tasks, retries and speculation read the same rows.

_OPENING_THREADS = 16
_REFERENCES = ("read_branch", "read_tag")


def pinned(snapshot: Snapshot, leaves: pa.Table) -> tuple[pa.Table, str]:
    """Give every leaf a version, and those that are read at a branch that branch's location.

    Args:
        snapshot: The namespace.
        leaves: What ``Snapshot.leaves`` found.

    Returns:
        The same rows without ``read_branch`` and ``read_tag``, no ``read_version`` NULL; and the
        identity of the leaves as they were found, the namespace's own where it names them all.

    Raises:
        LeafMissing: A leaf, its branch or its tag is not there.

    Spec: "Read Behavior".
    """
    open_ended = pc.is_null(leaves["read_version"])
    names = [name for name in _REFERENCES if name in leaves.column_names]
    for name in names:
        open_ended = pc.or_(open_ended, pc.is_valid(leaves[name]))
    if not pc.any(open_ended, min_count=0).as_py():
        return leaves.drop_columns(names), snapshot.identity
    asked = leaves.filter(open_ended).select(["location", "read_version", *names]).to_pylist()

    def resolve(row: dict[str, object]) -> ResolvedLeaf:
        branch, tag = (row.get(name) for name in _REFERENCES)
        return resolve_reference(
            snapshot.location,
            str(row["location"]),
            (branch if isinstance(branch, str) else None, tag if isinstance(tag, str) else None),
            version if isinstance(version := row["read_version"], int) else None,
            snapshot.storage_options,
        )

    most = leaves_at_once(snapshot.location, on_disk=_OPENING_THREADS)
    with ThreadPoolExecutor(most) as pool:
        resolved = list(pool.map(resolve, asked))
    mask = open_ended.combine_chunks()
    for name, attribute in (("location", "location"), ("read_version", "version")):
        column = leaves[name].combine_chunks()
        values = pa.array([getattr(leaf, attribute) for leaf in resolved], column.type)
        filled = pc.replace_with_mask(column, mask, values)
        leaves = leaves.set_column(leaves.column_names.index(name), name, filled)
    identities = (leaf.identity for leaf in resolved)
    return leaves.drop_columns(names), combined_identity([snapshot.identity, *identities])


# The sort order that the rows of a scan's partitions are known to have.
#
# An order counts only where every chosen partition has a record of it, made by the commit that
# wrote the very version that is read. What another writer appended, compacted or rewrote has
# another version; a changed write order or column type makes another order of it. Unknown means
# none.

# Files that one task merges at most: each is open with a batch of its rows.
_MOST_MERGED: Final = 64


def known_order(plan: ScanPlan, names: Sequence[str]) -> tuple[OrderColumn, ...]:
    """Give the order of every fragment of the chosen partitions, as far as it can be seen.

    Args:
        plan: The chosen partitions.
        names: The top-level columns of the scan's output.

    Returns:
        The longest beginning of the table's write order that is in the output; nothing where some
        partition is not known to be in it.
    """
    leaves = plan.table
    order = WriteOrder.known(plan.snapshot.properties, plan.snapshot.schema)
    if order is None or RECORDED_ORDER not in leaves.column_names:
        return ()
    versions = leaves["read_version"].cast(pa.utf8())
    keys = pc.binary_join_element_wise(versions, order.identity, " ")
    is_known = pc.fill_null(pc.equal(leaves[RECORDED_ORDER], keys), fill_value=False)
    is_known = pc.and_(is_known, pc.less_equal(_num_files(leaves), _MOST_MERGED))
    return order.prefix(names) if pc.all(is_known, min_count=0).as_py() else ()


def mergeable_scans(assigned: pa.Table, leaves: Mapping[int, pa.Table]) -> list[int]:
    """List the scans of which no task has too many files to merge them.

    Args:
        assigned: What is read under each key: scan, key, leaf, first_fragment and end_fragment.
        leaves: For each scan whose table has a write order, its chosen partitions.
    """
    mergeable: list[int] = []
    for scan in leaves.keys() & set(pc.unique(assigned["scan"]).to_pylist()):
        is_read = pc.and_(pc.equal(assigned["scan"], scan), pc.is_valid(assigned["leaf"]))
        rows = assigned.filter(is_read)
        of_part = pc.subtract(rows["end_fragment"], rows["first_fragment"]).cast(pa.int64())
        files = pc.coalesce(of_part, pc.take(_num_files(leaves[scan]), rows["leaf"]))
        by_key = pa.table({"key": rows["key"], "files": files}).group_by("key")
        most = pc.max(by_key.aggregate([("files", "sum")])["files_sum"])
        if (most.as_py() or 0) <= _MOST_MERGED:
            mergeable.append(scan)
    return sorted(mergeable)


def _num_files(leaves: pa.Table) -> pa.ChunkedArray:
    """Count the fragments of each leaf; more than can be merged where they are not known."""
    return pc.fill_null(leaves["num_fragments"], _MOST_MERGED + 1)


_SHOWN = 3
_SHOWN_IN_HTML = 20


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition that a scan reads.

    Args:
        object_id: Its table in the manifest.
        location: Its directory, relative to the namespace.
        version: The Lance version to read.
        values: Partition value by field id, those of its own spec version only; a text where
            Python's dates and times have no such year.
        residual: The complete filter that its rows still have to pass; None for none.
        num_rows: Rows before any filter, where known.
        num_bytes: Bytes of its files, where known.
    """

    object_id: str
    location: str
    version: int | None
    values: Mapping[str, object]
    residual: str | None
    num_rows: int | None
    num_bytes: int | None


@dataclass(frozen=True, slots=True, repr=False)
class ScanPlan:
    """What a scan reads.

    Args:
        snapshot: The namespace at the version that was planned.
        schema: The projected schema.
        bound: The predicate in the types of its columns.
        manifest_sql: The one query over ``__manifest`` that chose the partitions.
        table: One row per partition: object_id, location, read_version (uint64, resolved and
            pinned), num_rows, num_bytes, num_fragments, is_counted, partition_field_*, residual
            (int32 index into ``residuals``, -1 for none) and row_filter (the same into
            ``row_filters``).
        residuals: The distinct residual filters of exact conjuncts, in the DataFusion dialect.
        row_filters: The distinct complete residual filters, for readers without Spark behind them.
        identity: Tells the leaves at these versions from others that were at their places before.
        num_pruned: Partitions that partition values leave and the statistics of columns do not.
        given: The predicates one by one, in their order, each in the types of its columns.
        decided: The conjuncts that partition values decide for every chosen partition: all of
            their rows satisfy them.
    """

    snapshot: Snapshot
    schema: pa.Schema
    bound: BoundPredicate
    manifest_sql: str
    table: pa.Table
    residuals: tuple[str, ...]
    row_filters: tuple[str, ...]
    identity: str
    num_pruned: int = 0
    given: tuple[BoundPredicate, ...] = ()
    decided: tuple[BoundPredicate, ...] = ()

    def __repr__(self) -> str:
        """Tell in one line how much is read."""
        rows = "an unknown number of" if self.num_rows is None else f"{self.num_rows:,}"
        return (
            f"ScanPlan({self.table.num_rows:,} of {self.partitions_total:,} partitions of"
            f" {self.snapshot.location}, {rows} rows before filters)"
        )

    def _repr_html_(self) -> str:
        where = f" where {escape(self.predicate)}" if self.predicate else ""
        return f"<p>{escape(repr(self))}{where}</p>{self.partitions_html()}"

    def partitions_html(self) -> str:
        """Show the first partitions as a table, with bars for their rows."""
        shown = self.partitions[:_SHOWN_IN_HTML]
        fields = list(dict.fromkeys(name for partition in shown for name in partition.values))
        most = max((partition.num_rows or 0 for partition in shown), default=0)
        cells = (
            (
                *(partition.values.get(name, "") for name in fields),
                Bar(partition.num_rows, most),
                partition.residual or "",
            )
            for partition in shown
        )
        total = len(self.partitions)
        more = f"<p>… {total:,} in all</p>" if len(shown) < total else ""
        return html_table((*fields, "rows", "filter"), cells) + more

    @property
    def predicate(self) -> str:
        """The whole predicate as a filter in the DataFusion dialect; empty for none."""
        return "" if self.bound == TRUE else row_condition(self.bound).sql(dialect=DataFusion)

    @property
    def fixed(self) -> dict[int, pa.Scalar]:
        """The columns, by field id, that have one value in all rows of the predicate."""
        return fixed_values(self.bound)

    @property
    def pushed(self) -> str:
        """The exact conjuncts alone, which Spark need not evaluate again; empty for none."""
        return exact_filter(self.bound) or ""

    @property
    def is_filtered(self) -> bool:
        """Whether the predicate asks for more than that columns are not NULL."""
        return not all(
            isinstance(conjunct, Compared) and conjunct.comparison.operator is Operator.IS_NOT_NULL
            for conjunct in conjuncts(self.bound)
        )

    @property
    def partitions(self) -> PlannedPartitions:
        """The chosen partitions, made on demand."""
        return PlannedPartitions(self)

    @property
    def partitions_total(self) -> int:
        """How many partitions the snapshot has."""
        if self.bound == TRUE:
            return int(self.table.num_rows)
        return self.snapshot.num_leaves

    @property
    def num_rows(self) -> int | None:
        """Rows of the chosen partitions before any filter; None when one does not say."""
        return _total(self.table, "num_rows")

    @property
    def counted_rows(self) -> int | None:
        """Rows of the chosen partitions, where the manifest has counted them at their versions."""
        table = self.table
        if IS_COUNTED in table.column_names:
            is_counted = pc.all(table[IS_COUNTED], min_count=0).as_py()
            return _total(table, "num_rows") if is_counted else None
        return None

    @property
    def num_bytes(self) -> int | None:
        """Bytes of the chosen partitions; None when one does not say."""
        return _total(self.table, "num_bytes")


@dataclass(frozen=True, slots=True, repr=False)
class PlannedPartitions(Sequence[PlannedPartition]):
    """The partitions of a plan; each is made when it is asked for."""

    plan: ScanPlan

    def __repr__(self) -> str:
        """Show the first few in their values, and how many there are."""
        first = "; ".join(
            ", ".join(f"{name}={value}" for name, value in partition.values.items()) or "the only"
            for partition in self[:_SHOWN]
        )
        more = f"; … {len(self):,} in all" if len(self) > _SHOWN else ""
        return f"PlannedPartitions({first}{more})"

    def __len__(self) -> int:
        return int(self.plan.table.num_rows)

    @overload
    def __getitem__(self, index: int) -> PlannedPartition: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PlannedPartition]: ...
    def __getitem__(self, index: int | slice) -> PlannedPartition | Sequence[PlannedPartition]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = range(len(self))[index]
        return _partition(self.plan, python_rows(self.plan.table.slice(position, 1))[0])

    def __iter__(self) -> Iterator[PlannedPartition]:
        for batch in self.plan.table.to_batches(max_chunksize=1_000):
            for row in python_rows(batch):
                yield _partition(self.plan, row)


def plan_scan(
    snapshot: Snapshot,
    predicate: str | exp.Expression | Sequence[str | exp.Expression] | None = None,
    columns: Sequence[str] | None = None,
    *,
    time_zone: str = "UTC",
    by_statistics: bool = True,
    with_metadata: bool = False,
) -> ScanPlan:
    """Choose the partitions that can have a row for which the predicate is true.

    Args:
        snapshot: The namespace.
        predicate: Spark SQL text or a parsed predicate; several all have to hold.
        columns: Top-level columns to read, in this order; None for all.
        time_zone: Spark's session time zone. In any other than UTC, casts between zoned timestamps
            and dates, and functions of them that never decrease, prune by a day less on both
            sides; equal months by one more on both sides, ``day`` and ``hour`` do not.
        by_statistics: Whether the statistics of columns prune, too; without them partition values
            alone decide, which are the same whatever rows come and go.
        with_metadata: Whether a predicate may name metadata columns: ``_partition.region = 'eu'``.
            Leaves do not have them, so that who asks evaluates the predicate again.

    Returns:
        The plan. FALSE and NULL predicates have no partition.

    Raises:
        PredicateSyntaxError: The text is no predicate.
        UnknownColumn: The predicate or ``columns`` names a column that is not there.

    Spec: "Partition Pruning", Appendix D.
    """
    schema = snapshot.schema.arrow
    given = _given(snapshot, predicate, time_zone, with_metadata=with_metadata)
    bound = without_contradiction(all_of(given))
    parts = conjuncts(bound)
    texts = [predicate] if isinstance(predicate, str | exp.Expression) else list(predicate or ())
    is_told = all(isinstance(text, str) for text in texts)
    asked = tuple(texts) if is_told else (), time_zone, by_statistics, with_metadata
    key = replace(snapshot.key, detail=asked)
    chosen = _CHOSEN.peek(key) if is_told else None
    if chosen is None:
        chosen = _chosen(snapshot, parts, by_statistics=by_statistics)
        if is_told and chosen.identity == snapshot.identity:  # else leaves are looked up each time
            _CHOSEN.keep(key, chosen)
    leaves, flagged = chosen.leaves, chosen.flagged
    exact, whole = exact_and_whole(parts, flagged, leaves)
    kept = [
        name for name in leaves.column_names if not name.startswith("flag_") and name not in BESIDE
    ]
    table = leaves.select(kept).append_column("residual", exact.indices)
    return ScanPlan(
        snapshot=snapshot,
        schema=_projected(schema, columns),
        bound=bound,
        manifest_sql=chosen.sql,
        table=table.append_column("row_filter", whole.indices),
        residuals=exact.texts,
        row_filters=whole.texts,
        identity=chosen.identity,
        num_pruned=chosen.num_pruned,
        given=given,
        decided=tuple(parts[position] for position in sorted(_decided(flagged, leaves))),
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The leaves that a scan reads, with a flag column for each position in ``flagged``."""

    leaves: pa.Table
    identity: str
    sql: str
    flagged: tuple[int, ...] = ()
    num_pruned: int = 0


# A store is asked for the rows of the manifest once, and not by each scan of a version.
_CHOSEN: Final[Cache[_Chosen]] = Cache(
    "leaves of scans", max_bytes=16 << 20, weigh=lambda chosen: 4096 + int(chosen.leaves.nbytes)
)


def _chosen(snapshot: Snapshot, parts: Sequence[BoundPredicate], *, by_statistics: bool) -> _Chosen:
    """Choose leaves by partition values, then by statistics for what these do not decide."""
    if FALSE in parts:
        query = snapshot.leaves(exp.false())
        return _Chosen(*pinned(snapshot, query.table), query.sql)
    asked = manifest_query(snapshot, parts)
    is_asked = by_statistics and any(may_prune(part) for part in parts)
    beside = BESIDE if is_asked else ()
    may_match = partial(may_match_at, snapshot, parts) if is_asked else None
    query = snapshot.leaves(asked.condition, asked.flags, beside, may_match)
    decided = _decided(asked.flagged, query.table) if is_asked else set()
    leaves, identity = pinned(snapshot, query.table)
    num_pruned = query.num_ruled_out
    undecided = [part for at, part in enumerate(parts) if at not in decided and may_prune(part)]
    if is_asked and undecided:
        is_possible = has_possible_row(snapshot, leaves, undecided)
        num_pruned += leaves.num_rows - is_possible.true_count
        leaves = leaves.filter(is_possible)
    return _Chosen(leaves, identity, query.sql, asked.flagged, num_pruned)


def bound_condition(
    snapshot: Snapshot, predicates: Sequence[exp.Expression], *, time_zone: str
) -> BoundPredicate:
    """Give predicates that may name metadata columns as ``plan_scan`` binds them, without a plan.

    Args:
        snapshot: The namespace.
        predicates: They all have to hold.
        time_zone: As for ``plan_scan``.

    Raises:
        UnknownColumn: As of ``plan_scan``.
    """
    return without_contradiction(
        all_of(_given(snapshot, predicates, time_zone, with_metadata=True))
    )


def _given(
    snapshot: Snapshot,
    predicate: str | exp.Expression | Sequence[str | exp.Expression] | None,
    time_zone: str,
    *,
    with_metadata: bool,
) -> tuple[BoundPredicate, ...]:
    columns_known = known_columns(snapshot) if with_metadata else snapshot.schema.arrow
    return tuple(bind(tree, columns_known, time_zone) for tree in _parsed(predicate))


def _decided(flagged: Sequence[int], leaves: pa.Table) -> set[int]:
    """Find the positions of the conjuncts that partition values decide for all leaves."""
    return {
        position
        for flag, position in enumerate(flagged)
        if pc.all(pc.fill_null(leaves[f"flag_{flag}"], fill_value=False), min_count=0).as_py()
    }


def _parsed(
    predicate: str | exp.Expression | Sequence[str | exp.Expression] | None,
) -> list[exp.Expression]:
    if predicate is None:
        return []
    several = [predicate] if isinstance(predicate, str | exp.Expression) else predicate
    return [parse_predicate(name) if isinstance(name, str) else name for name in several]


def _projected(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    return pa.schema(
        [schema.field(_top_level(name, schema)) for name in columns], metadata=schema.metadata
    )


def _top_level(name: str, schema: pa.Schema) -> str:
    path = column_path(name)
    column, *fields = resolve_column(path, schema).path
    if fields:
        columns = f"{column}, which is read as a whole, fields and all"
        raise UnknownColumn(column=name, columns=columns)
    return column


def _total(table: pa.Table, name: str) -> int | None:
    column = table.column(name)
    return None if column.null_count else int(pc.sum(column).as_py() or 0)


def _partition(plan: ScanPlan, row: Mapping[str, object]) -> PlannedPartition:
    object_id = str(row["object_id"])
    spec = plan.snapshot.specs[spec_version_of(object_id)]
    filter_index = row["row_filter"]
    return PlannedPartition(
        object_id=object_id,
        location=str(row["location"]),
        version=_integer(row["read_version"]),
        values={field.field_id: row[PARTITION_PREFIX + field.field_id] for field in spec.fields},
        residual=None
        if not isinstance(filter_index, int) or filter_index == NO_RESIDUAL
        else plan.row_filters[filter_index],
        num_rows=_integer(row["num_rows"]),
        num_bytes=_integer(row["num_bytes"]),
    )


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None
