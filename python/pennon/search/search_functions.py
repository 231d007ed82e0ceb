"""The table functions of SQL that search: a call, its arguments, and the table that it gives.

Arguments are called as lance-spark calls them; ``where`` and ``exact`` are other words for its
``filter`` and ``bypass_vector_index``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pennon.errors import SearchOptionRefused
from pennon.metadata_tables import MetadataTable, Selection
from pennon.search.nearest import nearest_rows
from pennon.search.search_plan import DISTANCE, QUERY_INDEX, plan_search
from pennon.search.text import (
    RELEVANCE,
    SCORE,
    best_rows,
    plan_hybrid,
    plan_text,
)
from pennon.spec.column_names import listed_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from pennon.manifest import Snapshot
    from pennon.metadata_tables.metadata_table import SearchCall
    from pennon.search.search_plan import SearchPlan
    from pennon.search.text import HybridPlan, TextPlan

__all__ = ["search_table"]


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
_WHERE: Final = ("where", str, "a condition")
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
    "where": _WHERE,
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
    "where": _WHERE,
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
    "where": _WHERE,
    "exact": _EXACT,
}
_OTHER_WORDS: Final = {
    "filter": "where",
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


def search_table(call: SearchCall, table: str) -> MetadataTable:
    """Give what a call finds as a table: the rows' columns, and how near or how good each is.

    Args:
        call: The call.
        table: What errors call the table that is searched.

    Raises:
        SearchOptionRefused: There is no such argument, or it does not take this value.
    """
    function = _FUNCTIONS[call.function]
    options = dict.fromkeys(function.queries) | dict(_options(call, function.arguments, table))
    given = options.pop("where", None)
    where = [*call.where, *([] if given is None else [given])]

    def planned(
        snapshot: Snapshot, columns: tuple[str, ...] | None
    ) -> SearchPlan | TextPlan | HybridPlan:
        others = options if columns is None else {**options, "columns": columns}
        return function.plan(snapshot, where=where, table=table, **others)

    def schema(snapshot: Snapshot) -> pa.Schema:
        return planned(snapshot, None).result_schema

    def rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
        columns = tuple(name for name in selection.columns if name not in function.own)
        yield function.rows(planned(snapshot, columns))

    return MetadataTable(call.function, schema, rows)


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
                expected="one of " + ", ".join(names),
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
