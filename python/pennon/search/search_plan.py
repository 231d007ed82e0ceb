"""Plans a search: the leaves that a condition leaves, what is looked for, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.errors import SearchOptionRefused
from pennon.execution import LeafRead
from pennon.manifest.format.properties import index_definitions
from pennon.planning import plan_scan
from pennon.planning.binding.bound_predicate import check_evaluable
from pennon.search.vectors import Metric, query_vectors, vector_column
from pennon.spec.column_defaults import initial_default
from pennon.spec.schema import field_id_of
from pennon.transaction.staging.staged import leaf_states

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.manifest import Snapshot
    from pennon.manifest.format.properties import IndexDefinition
    from pennon.planning import ScanPlan

__all__ = [
    "DISTANCE",
    "QUERY_INDEX",
    "SearchLeaf",
    "SearchOptions",
    "SearchPlan",
    "check_least",
    "check_names",
    "explain_search",
    "plan_search",
    "search_leaves_of",
]

QUERY_INDEX: Final = pa.field("query_index", pa.int32(), nullable=False)
"""Which query of several a row was found for."""
_UNBIASED: Final = ("IVF_RQ",)
"""Kinds of index whose estimates of distances are as often too large as too small."""
DISTANCE: Final = pa.field("_distance", pa.float32(), nullable=False)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How a search is done.

    Args:
        exact: Whether no index is asked.
        nprobes: How many parts of an index are looked into at least; None for Lance's choice.
        refine_factor: Of how many times k candidates of an index the exact distances are computed;
            None for of none.
        ef: How many candidates a graph keeps; None for Lance's choice.
    """

    exact: bool = False
    nprobes: int | None = None
    refine_factor: int | None = 4
    ef: int | None = None


@dataclass(frozen=True, slots=True)
class SearchLeaf:
    """One leaf that is searched.

    Args:
        ordinal: Its place among the plan's leaves, which are in the order of their object ids.
        object_id: Its table in the manifest.
        read: Where it is, and the whole filter that its rows have to pass first.
    """

    ordinal: int
    object_id: str
    read: LeafRead


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What is searched and for what: a value, which tasks elsewhere may be given.

    Args:
        namespace: Path or URL of the table.
        version: The version of the table.
        identity: Tells the leaves at their versions from others that were at their places before.
        vector: The column that is searched.
        schema: The columns of the rows that are found, without the distance.
        namespace_schema: All columns of the table.
        queries: One row per query, in the type of the column's elements.
        is_batch: Whether rows say which query they were found for.
        k: How many rows are found for each query, at most.
        metric: How distances are measured.
        options: How it is done.
        leaves: All leaves that can have such rows.
        partitions_total: How many leaves the table has.
        is_refined_late: Whether what the index estimates can be compared over leaves.
        storage_options: Given to Lance, never printed.
    """

    namespace: str
    version: int
    identity: str
    vector: pa.Field
    schema: pa.Schema
    namespace_schema: pa.Schema
    queries: npt.NDArray[np.generic] = field(compare=False)
    is_batch: bool
    k: int
    metric: Metric
    options: SearchOptions
    leaves: tuple[SearchLeaf, ...]
    partitions_total: int
    is_refined_late: bool = False
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @property
    def result_schema(self) -> pa.Schema:
        """The columns of the rows that are found."""
        first = [QUERY_INDEX] if self.is_batch else []
        return pa.schema([*first, *self.schema, DISTANCE])

    @property
    def may_have_null_elements(self) -> bool:
        """Whether the column's vectors may have elements that are NULL."""
        return bool(self.vector.type.value_field.nullable)

    @property
    def has_default(self) -> bool:
        """Whether rows of leaves without the column have a vector, too."""
        return initial_default(self.vector) is not None

    def __repr__(self) -> str:
        """Tell in one line what is searched."""
        rows = [leaf.read.num_rows for leaf in self.leaves]
        known = None if None in rows else sum(number or 0 for number in rows)
        count = "an unknown number of" if known is None else f"{known:,}"
        return (
            f"SearchPlan(top {self.k:,} of {len(self.queries):,} queries by {self.metric} of"
            f" {self.vector.name}, {len(self.leaves):,} of {self.partitions_total:,} partitions of"
            f" {self.namespace}, {count} rows before filters)"
        )


def plan_search(
    snapshot: Snapshot,
    q: object,
    *,
    column: str | None = None,
    k: int = 10,
    where: str | Sequence[str] | None = None,
    metric: str | None = None,
    exact: bool = False,
    nprobes: int | None = None,
    refine_factor: int | None = None,
    ef: int | None = None,
    columns: Sequence[str] | None = None,
    table: str | None = None,
) -> SearchPlan:
    """Choose the leaves that can have the rows nearest to vectors, without opening one.

    Args:
        snapshot: The table.
        q: A vector, or several.
        column: The column that is searched; None for the only one that has vectors.
        k: How many rows are found for each query, at most.
        where: Conditions in Spark SQL that rows have to satisfy before the nearest are chosen.
        metric: ``l2``, ``cosine``, ``dot`` or ``hamming``; None for that of the column's index.
        exact: Whether no index is asked.
        nprobes: How many parts of an index are looked into at least.
        refine_factor: Of how many times k candidates of an index exact distances are computed.
        ef: How many candidates a graph keeps.
        columns: The columns of the rows; None for all.
        table: What errors call the table; None for its folder.

    Raises:
        NotVectorColumn: The column has no vectors.
        QueryVectorRefused: A query is no vector.
        QueryDimensionMismatch: A query has another number of elements than the column's vectors.
        SearchOptionRefused: A number is less than one, or a metric is not known.
        PredicateNotEvaluable: A part of the condition is not understood outside of Spark.
    """
    name = table or snapshot.location
    schema = snapshot.schema.arrow
    vector = vector_column(schema, column, name)
    queries, is_batch = query_vectors(q, vector, name)
    check_least(name, {"k": k, "nprobes": nprobes, "refine_factor": refine_factor, "ef": ef})
    scan = plan_scan(snapshot, where, columns)
    check_names(scan.schema, (DISTANCE.name, *([QUERY_INDEX.name] if is_batch else [])), name)
    check_evaluable(scan.bound, name)
    index = _index_of(snapshot, vector)
    measured = Metric.of(metric or (None if index is None else index.metric), vector, name)
    options = SearchOptions(exact, nprobes, refine_factor or SearchOptions().refine_factor, ef)
    return SearchPlan(
        namespace=snapshot.location,
        version=snapshot.version,
        identity=scan.identity,
        vector=vector,
        schema=scan.schema,
        namespace_schema=schema,
        queries=queries,
        is_batch=is_batch,
        k=k,
        metric=measured,
        options=options,
        leaves=search_leaves_of(scan),
        partitions_total=scan.partitions_total,
        is_refined_late=not exact
        and index is not None
        and index.type in _UNBIASED
        and index.metric == measured,
        storage_options=dict(snapshot.storage_options),
    )


def _index_of(snapshot: Snapshot, vector: pa.Field) -> IndexDefinition | None:
    """Give the index of vectors that the column has."""
    field_id = field_id_of(vector)
    definitions = index_definitions(snapshot.metadata).values()
    return next((one for one in definitions if one.field_id == field_id and one.metric), None)


def search_leaves_of(scan: ScanPlan) -> tuple[SearchLeaf, ...]:
    """Give the leaves of a scan as those of a search, in the order of their object ids."""
    partitions = sorted(scan.partitions, key=lambda partition: partition.object_id)
    return tuple(
        SearchLeaf(
            ordinal,
            one.object_id,
            LeafRead(one.location, one.version, one.residual, num_rows=one.num_rows),
        )
        for ordinal, one in enumerate(partitions)
    )


def check_least(table: str, numbers: Mapping[str, int | None]) -> None:
    """Refuse options below one; None is not given."""
    for option, number in numbers.items():
        if number is not None and number < 1:
            raise SearchOptionRefused(
                table=table, option=option, value=number, why="less than 1", expected="1 or more"
            )


def check_names(schema: pa.Schema, given: Sequence[str], table: str) -> None:
    """Refuse columns of the names that the search itself gives."""
    for own in given:
        if own in schema.names:
            raise SearchOptionRefused(
                table=table,
                option="columns",
                value=own,
                why="a column of the table, and the search gives one of the same name",
                expected="the other columns",
            )


def explain_search(snapshot: Snapshot, plan: SearchPlan) -> str:
    """Tell what a search reads: its leaves, by index or row by row, and the filter before k.

    Args:
        snapshot: The table at the plan's version.
        plan: The search.

    Returns:
        Lines without a final line break.
    """
    field_id = field_id_of(plan.vector)
    defined = {
        one.name
        for one in index_definitions(snapshot.metadata).values()
        if one.field_id == field_id and one.metric == plan.metric and not plan.options.exact
    }
    states = leaf_states(snapshot, [leaf.object_id for leaf in plan.leaves]).values()
    indexed = {
        state.object_id: sum(index.rows for index in state.indexes or () if index.name in defined)
        for state in states
    }
    by_index = [rows for rows in indexed.values() if rows]
    rows = [leaf.read.num_rows for leaf in plan.leaves]
    total = "unknown" if None in rows else f"{sum(filter(None, rows)) - sum(by_index):,}"
    filters = dict.fromkeys(leaf.read.residual for leaf in plan.leaves if leaf.read.residual)
    names = ", ".join(sorted(defined)) or "none"
    lines = [
        repr(plan),
        f"partitions: {len(plan.leaves):,} of {plan.partitions_total:,}",
        f"by index: {len(by_index):,} leaves, {sum(by_index):,} rows ({names})",
        f"row by row: {len(plan.leaves) - len(by_index):,} leaves; rows in no index: {total}",
        *(f"filter before k: {text}" for text in filters),
    ]
    return "\n".join(lines if filters else [*lines, "filter before k: none"])
