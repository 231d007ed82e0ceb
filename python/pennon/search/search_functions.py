"""The table functions of SQL that search: a call, its arguments, and the table that it gives.

Arguments are called as lance-spark calls them; ``where`` and ``exact`` are other words for its
``filter`` and ``bypass_vector_index``.

``q JOIN t {APPROX | EXACT} NEAREST k BY …``, rows of a stream beside the rows nearest to each, runs
as one of Spark's functions over Arrow batches of the left side, in its Python processes: a batch is
one search of as many queries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import (
    PredicateNotEvaluable,
    QueryDimensionMismatch,
    QueryVectorRefused,
    SearchOptionRefused,
)
from pennon.metadata_tables import MetadataTable, Selection
from pennon.planning.binding.bound_predicate import check_evaluable
from pennon.planning.scan_plan import bound_condition
from pennon.predicate.condition import is_utc_zone
from pennon.predicate.parse import parse_predicate
from pennon.search.nearest import FirstRows, first_rows, nearest_rows
from pennon.search.search_plan import (
    DISTANCE,
    QUERY_INDEX,
    RELEVANCE,
    SCORE,
    SearchPlan,
    plan_hybrid,
    plan_search,
    plan_text,
    search_details,
)
from pennon.search.text import best_rows
from pennon.search.vectors import Metric, is_vector, known_vectors, query_vectors
from pennon.spec.column_names import listed_columns

if TYPE_CHECKING:
    from pennon.manifest import Snapshot
    from pennon.metadata_tables.metadata_table import SearchCall
    from pennon.search.search_plan import HybridPlan, TextPlan

__all__ = ["METRICS_OF_RANKINGS", "NearestJoin", "check_zone", "search_table"]

METRICS_OF_RANKINGS: Final[Mapping[tuple[str, bool], Metric]] = {
    ("vector_l2_distance", True): Metric.L2,
    ("vector_cosine_similarity", False): Metric.COSINE,
    ("vector_inner_product", False): Metric.DOT,
}
"""By Spark's function, and whether the least of it is the nearest: how a join measures."""
_FIRST_ROWS: Final = "first_rows"
# The orders of which rows are found: whether rows without a distance come first.
_ORDERS: Final[Mapping[str, bool]] = {
    "vector_l2_distance ASC NULLS FIRST": True,
    "vector_l2_distance ASC NULLS LAST": False,
}
_MOST_FIRST: Final = 10_000
# Queries of one search: what is found of all of them is in memory at once.
_MOST_QUERIES: Final = 256


@dataclass(frozen=True, slots=True)
class NearestJoin:
    """The join as a function over batches; the last column of each has the queries.

    Args:
        plan: The search, of queries that each batch brings.
        table: What errors call the table that is searched.
        keeps_unmatched: Whether a row without any neighbour stays, with NULL beside it.
        schema: The columns of the left side without the query, then those of the rows nearest.
    """

    plan: SearchPlan
    table: str
    keeps_unmatched: bool
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join each batch; of a NULL query nothing is near, as in Spark.

        Raises:
            QueryDimensionMismatch: A query has another number of elements than the vectors.
            QueryVectorRefused: A query has NaN.
        """
        for batch in batches:
            for first in range(0, batch.num_rows, _MOST_QUERIES):
                yield from self._joined(batch.slice(first, _MOST_QUERIES)).to_batches()

    def _joined(self, batch: pa.RecordBatch) -> pa.Table:
        queries, places = self._queries(batch.column(batch.num_columns - 1))
        left, right = np.empty(0, np.int64), self.plan.result_schema.empty_table()
        if len(queries):
            right = nearest_rows(replace(self.plan, queries=queries, is_batch=True))
            left = places[right[QUERY_INDEX.name].to_numpy()]
        nearest = right.select([field.name for field in self.plan.schema])
        if self.keeps_unmatched:
            alone = np.setdiff1d(np.arange(batch.num_rows), left)
            nothing = pa.table(
                [pa.nulls(len(alone), one.type) for one in nearest.schema], nearest.schema
            )
            left, nearest = np.concatenate([left, alone]), pa.concat_tables([nearest, nothing])
        beside = [column.take(pa.array(left)) for column in batch.columns[:-1]]
        columns = [pa.chunked_array([column]) for column in beside] + nearest.columns
        stated = zip(columns, self.schema.types, strict=True)
        return pa.table([column.cast(kind) for column, kind in stated], self.schema)

    def _queries(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Give the queries that are known, and the rows that have them."""
        dimension = self.plan.vector.type.list_size
        lengths = pc.unique(pc.list_value_length(column).drop_null()).to_pylist()
        for given in set(lengths) - {dimension}:
            raise QueryDimensionMismatch(
                table=self.table,
                column=self.plan.vector.name,
                given=given,
                expected=dimension,
            )
        vectors, is_known = known_vectors(column, dimension)
        if not len(vectors):
            return vectors, np.flatnonzero(is_known)
        queries, _ = query_vectors(list(vectors), self.plan.vector, self.table)
        return queries, np.flatnonzero(is_known)


def _columns(value: Any) -> tuple[str, ...]:
    return tuple(listed_columns(value)) if isinstance(value, str) else tuple(map(str, value))


def _only(value: Any) -> object:
    """Give a value, or the only one of a list."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


# An argument's name in SQL → the one of the search, the types of its values, and what it is.
_Argument = tuple[str, type | tuple[type, ...], str]
_NUMBER: Final = "a whole number"
_K: Final = ("k", int, _NUMBER)
_COLUMNS: Final = ("columns", (str, list), "columns with commas between them, or an array of them")
_QUERY: Final = ("query", str, "a text")
_QUERY_VECTOR: Final = ("q", list, "an array of numbers, or of such arrays")
_METRIC: Final = ("metric", str, "l2, cosine, dot or hamming")
_EXACT: Final = ("exact", bool, "true or false")
_OF_VECTORS: Final[Mapping[str, _Argument]] = {
    "query_vector": _QUERY_VECTOR,
    "vector_column": ("column", str, "a column"),
    "num_results": _K,
    "distance_type": _METRIC,
    "columns": _COLUMNS,
    "nprobes": ("nprobes", int, _NUMBER),
    "ef": ("ef", int, _NUMBER),
    "refine_factor": ("refine_factor", int, _NUMBER),
    "exact": _EXACT,
}
_OF_TEXTS: Final[Mapping[str, _Argument]] = {
    "query": _QUERY,
    "search_columns": ("column", str, "a column"),
    "num_results": _K,
    "columns": _COLUMNS,
    "operator": ("operator", str, "or, and"),
    "fuzziness": ("fuzziness", int, _NUMBER),
    "scope": ("scope", str, "global or partition"),
    "ascii_folding": ("ascii_folding", bool, "true or false"),
}
_OF_BOTH: Final[Mapping[str, _Argument]] = {
    "query": _QUERY,
    "query_vector": _QUERY_VECTOR,
    "search_columns": ("text_column", str, "a column"),
    "vector_column": ("vector_column", str, "a column"),
    "num_results": _K,
    "candidates": ("candidates", int, _NUMBER),
    "rrf_k": ("rrf_k", int, _NUMBER),
    "distance_type": _METRIC,
    "columns": _COLUMNS,
    "exact": _EXACT,
}
_OTHER_WORDS: Final = {
    "bypass_vector_index": "exact",
    "text_column": "search_columns",
    "query_text": "query",
}


@dataclass(frozen=True, slots=True)
class _Function:
    """A table function.

    Args:
        arguments: What it takes, in order.
        queries: Those of the search that are always given.
        plan: Plans the search.
        rows: Does it.
        own: The columns of the rows that are none of the table's.
    """

    arguments: Mapping[str, _Argument]
    queries: tuple[str, ...]
    plan: Callable[..., SearchPlan | TextPlan | HybridPlan]
    rows: Callable[[Any], pa.Table]
    own: frozenset[str]


_TEXT_SEARCH: Final = _Function(
    _OF_TEXTS, ("query",), plan_text, best_rows, frozenset({SCORE.name})
)
_FUNCTIONS: Final[Mapping[str, _Function]] = {
    "vector_search": _Function(
        _OF_VECTORS,
        ("q",),
        plan_search,
        nearest_rows,
        frozenset({DISTANCE.name, QUERY_INDEX.name}),
    ),
    "search": _TEXT_SEARCH,
    "search_text": _TEXT_SEARCH,
    "hybrid_search": _Function(
        _OF_BOTH, ("query", "q"), plan_hybrid, best_rows, frozenset({RELEVANCE.name})
    ),
}


def search_table(call: SearchCall, table: str, snapshot: Snapshot) -> MetadataTable:
    """Give what a call finds as a table: the rows' columns, and how near or how good each is.

    Args:
        call: The call.
        table: What errors call the table that is searched.
        snapshot: That table.

    Raises:
        SearchOptionRefused: There is no such argument, or it does not take this value.
    """
    if call.function == _FIRST_ROWS:
        return _table_of_first_rows(call, table, snapshot)
    function = _FUNCTIONS[call.function]
    options = dict.fromkeys(function.queries) | dict(_options(call, function.arguments, table))
    check_zone(snapshot, call.where, call.time_zone, table)
    planned = partial(function.plan, snapshot, where=call.where, table=table)
    whole = cache(partial(planned, **options))  # for the columns and for EXPLAIN

    def rows(_: Snapshot, selection: Selection) -> Iterator[pa.Table]:
        columns = tuple(name for name in selection.columns if name not in function.own)
        plan = whole()
        if isinstance(plan, SearchPlan):
            plan = _with_columns(plan, columns)
        else:
            plan = planned(**options | {"columns": columns})
        yield function.rows(plan)

    def detail(_: Snapshot) -> str:
        plan = whole()
        return "; ".join(search_details(snapshot, plan)) if isinstance(plan, SearchPlan) else ""

    return MetadataTable(call.function, lambda _: whole().result_schema, rows, detail=detail)


def _table_of_first_rows(call: SearchCall, table: str, snapshot: Snapshot) -> MetadataTable:
    """Give rows that hold the first ones by an order; without a column where Spark has to sort."""
    given = {name: json.loads(text) for name, text in call.arguments.items()}
    is_nulls_first = _ORDERS.get(given["order"])
    column = given["vector_column"]
    names = snapshot.schema.arrow.names

    def rows(_: Snapshot, selection: Selection) -> Iterator[pa.Table]:
        yield first_rows(FirstRows(_with_columns(plan, selection.columns), bool(is_nulls_first)))

    nothing = MetadataTable(call.function, lambda _: pa.schema([]), rows)
    if is_nulls_first is None or column not in names:
        return nothing
    vector = snapshot.schema.arrow.field(column)
    if not is_vector(vector.type) or vector.type.value_type != pa.float32():
        return nothing
    try:
        check_zone(snapshot, call.where, call.time_zone, table)
        plan = plan_search(
            snapshot,
            given["query_vector"],
            column=column,
            k=given["num_results"],
            where=call.where,
            metric=Metric.L2,
            exact=True,
            table=table,
        )
    except (
        PredicateNotEvaluable,
        QueryDimensionMismatch,
        QueryVectorRefused,
        SearchOptionRefused,
    ):
        return nothing
    if plan.is_batch or plan.k > _MOST_FIRST or plan.has_default:
        return nothing
    return MetadataTable(
        call.function,
        lambda _: plan.schema,
        rows,
        detail=lambda _: "; ".join(search_details(snapshot, plan)),
    )


def _with_columns(plan: SearchPlan, columns: Sequence[str]) -> SearchPlan:
    """Give fewer columns of the rows; what is planned once need not be planned for them."""
    return replace(plan, schema=pa.schema([plan.schema.field(name) for name in columns]))


def check_zone(snapshot: Snapshot, where: Sequence[str], time_zone: str, table: str) -> None:
    """Refuse conditions that are about times of a session's zone: a search has those of UTC.

    Args:
        snapshot: The table.
        where: Conditions in Spark SQL whose literals say their type.
        time_zone: The session's.
        table: What errors call the table.

    Raises:
        PredicateNotEvaluable: What is left of a time without its zone depends on it, as its day.
    """
    if not is_utc_zone(time_zone):
        trees = [parse_predicate(condition) for condition in where]
        check_evaluable(bound_condition(snapshot, trees, time_zone=time_zone), table)


def _options(
    call: SearchCall, arguments: Mapping[str, _Argument], table: str
) -> Iterator[tuple[str, Any]]:
    names = list(arguments)
    for given, text in call.arguments.items():
        place = int(given) if given.isdigit() else None
        name = given.lower() if place is None else dict(enumerate(names)).get(place, given)
        name = _OTHER_WORDS.get(name, name)
        if name == "prefilter" and json.loads(text) is True:
            continue  # filters always come before the nearest rows are chosen
        if name not in arguments:
            raise SearchOptionRefused(
                table=table,
                option=given,
                value=text,
                why=f"no argument of {call.function}",
                expected="one of " + ", ".join([*names, "where"]),
            )
        keyword, types, kind = arguments[name]
        value = json.loads(text)
        if keyword.endswith("column"):
            value = _only(value)
        if value is None:
            continue
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            raise SearchOptionRefused(
                table=table, option=name, value=text, why=f"not {kind}", expected=kind
            )
        yield keyword, _columns(value) if keyword == "columns" else value
