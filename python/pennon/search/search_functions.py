"""The table functions of SQL that search: a call, its arguments, and the table that it gives.

Arguments are called as lance-spark calls them; ``where`` and ``exact`` are other words for its
``filter`` and ``bypass_vector_index``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pennon.errors import SearchOptionRefused
from pennon.metadata_tables import MetadataTable, Selection
from pennon.search.nearest import nearest_rows
from pennon.search.search_plan import DISTANCE, QUERY_INDEX, plan_search
from pennon.spec.column_names import listed_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from pennon.manifest import Snapshot
    from pennon.metadata_tables.metadata_table import SearchCall
    from pennon.search.search_plan import SearchPlan

__all__ = ["search_table"]


def _columns(value: object) -> tuple[str, ...]:
    return tuple(listed_columns(value)) if isinstance(value, str) else tuple(map(str, value))  # type: ignore[call-overload]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole_number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


# An argument's name in SQL → the one of the search, how its value is read, and what it is.
_Argument = tuple[str, Callable[[Any], object], str]
_OF_VECTORS: Final[Mapping[str, _Argument]] = {
    "query_vector": ("q", lambda value: value, "an array of numbers, or of such arrays"),
    "vector_column": ("column", _text, "a column"),
    "num_results": ("k", _whole_number, "a whole number"),
    "distance_type": ("metric", str, "l2, cosine, dot or hamming"),
    "columns": ("columns", _columns, "columns with commas between them, or an array of them"),
    "where": ("where", _text, "a condition"),
    "nprobes": ("nprobes", _whole_number, "a whole number"),
    "ef": ("ef", _whole_number, "a whole number"),
    "refine_factor": ("refine_factor", _whole_number, "a whole number"),
    "exact": ("exact", _truth, "true or false"),
}
_OTHER_WORDS: Final = {"filter": "where", "bypass_vector_index": "exact"}


def search_table(call: SearchCall, table: str) -> MetadataTable:
    """Give what a call finds as a table: the rows' columns, and how near each is.

    Args:
        call: The call.
        table: What errors call the table that is searched.

    Raises:
        SearchOptionRefused: There is no such argument, or it does not take this value.
    """
    options = dict(_options(call, table))

    def planned(snapshot: Snapshot, columns: tuple[str, ...] | None) -> SearchPlan:
        where = [*call.where, *([options["where"]] if options.get("where") is not None else [])]
        others = {name: value for name, value in options.items() if name not in ("where", "q")}
        if columns is not None:
            others["columns"] = columns
        return plan_search(snapshot, options.get("q"), where=where, table=table, **others)

    def schema(snapshot: Snapshot) -> pa.Schema:
        return planned(snapshot, None).result_schema

    def rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
        own = {DISTANCE.name, QUERY_INDEX.name}
        yield nearest_rows(planned(snapshot, tuple(c for c in selection.columns if c not in own)))

    return MetadataTable(call.function, schema, rows)


def _options(call: SearchCall, table: str) -> Iterator[tuple[str, Any]]:
    names = list(_OF_VECTORS)
    for given, text in call.arguments.items():
        place = int(given) if given.isdigit() else None
        name = given.lower() if place is None else dict(enumerate(names)).get(place, given)
        name = _OTHER_WORDS.get(name, name)
        if name == "prefilter" and json.loads(text) is True:
            continue  # filters always come before the nearest rows are chosen
        if name not in _OF_VECTORS:
            raise SearchOptionRefused(
                table=table,
                option=given,
                value=text,
                why=f"no argument of {call.function}",
                expected="one of " + ", ".join(names),
            )
        keyword, read, kind = _OF_VECTORS[name]
        value = json.loads(text)
        try:
            yield keyword, value if value is None else read(value)
        except TypeError:
            raise SearchOptionRefused(
                table=table, option=name, value=text, why=f"not {kind}", expected=kind
            ) from None
