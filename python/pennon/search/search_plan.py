"""Plans a search: the leaves that a condition leaves, what is looked for, and how.

A text is split into words: runs of letters, marks and digits of any script, in lower case; no word
is stemmed or left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import PennonError, SearchOptionRefused
from pennon.execution import LeafRead, Relation
from pennon.leaf.read.metadata_columns import ROW_ID
from pennon.manifest.format.properties import index_definitions
from pennon.planning import plan_scan
from pennon.planning.binding.bound_predicate import check_evaluable
from pennon.search.vectors import Metric, query_vectors, searched_column, vector_column
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
    "RELEVANCE",
    "SCORE",
    "Clause",
    "HybridPlan",
    "SearchLeaf",
    "SearchOptions",
    "SearchPlan",
    "TextPlan",
    "check_least",
    "check_names",
    "plan_hybrid",
    "plan_search",
    "plan_text",
    "search_details",
    "search_leaves_of",
    "split_words",
]

QUERY_INDEX: Final = pa.field("query_index", pa.int32(), nullable=False)
"""Which query of several a row was found for."""
_UNBIASED: Final = ("IVF_RQ",)
"""Kinds of index whose estimates of distances are as often too large as too small."""
DISTANCE: Final = pa.field("_distance", pa.float32(), nullable=False)
SCORE: Final = pa.field("_score", pa.float32(), nullable=False)
"""How well a row's text matches."""
RELEVANCE: Final = pa.field("_relevance_score", pa.float32(), nullable=False)
"""How far in front a row is among those of several searches."""
_MOST_EDITS: Final = 2
_NO_WORD: Final = r"[^\p{L}\p{M}\p{N}]+"
_CLAUSE: Final = re.compile(r'([+-]?)(?:"([^"]*)"|(\S+))')


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

    The arguments are those of ``SearchedTable.search``, where ``where`` may be several conditions;
    errors call the table ``table``, or by its folder.

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


def search_details(snapshot: Snapshot, plan: SearchPlan) -> list[str]:
    """Tell what a search reads: its leaves, by index or row by row, and the filter before k.

    Args:
        snapshot: The table at the plan's version.
        plan: The search.
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
    return [
        f"partitions: {len(plan.leaves):,} of {plan.partitions_total:,}",
        f"by index: {len(by_index):,} leaves, {sum(by_index):,} rows ({names})",
        f"row by row: {len(plan.leaves) - len(by_index):,} leaves; rows in no index: {total}",
        *(f"filter before k: {text}" for text in filters or ("none",)),
    ]


# Searches of texts.


def split_words(texts: pa.Array, *, ascii_folding: bool) -> pa.Array:
    """Split texts at whatever is in no word; pieces may be empty.

    Args:
        texts: The texts.
        ascii_folding: Whether accents are left out.

    Example:
        >>> split_words(pa.array(["Blue-ish SKY!"]), ascii_folding=False).to_pylist()
        [['blue', 'ish', 'sky', '']]
    """
    if pc.all(pc.string_is_ascii(texts)).as_py() is False:
        texts = pc.utf8_normalize(texts, "NFKD" if ascii_folding else "NFC")
        if ascii_folding:
            texts = pc.replace_substring_regex(texts, r"\p{M}+", "")
    return pc.split_pattern_regex(pc.utf8_lower(texts), _NO_WORD)


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a query: a word, or words that stand one after the other.

    Args:
        words: The words.
        sign: ``+`` where rows must match, ``-`` where they must not, else empty.
        edits: How many edits away a word may be.
    """

    words: tuple[str, ...]
    sign: str
    edits: int = 0


@dataclass(frozen=True, slots=True)
class TextPlan:
    """What texts are searched, and for what.

    Args:
        clauses: The query.
        text: The column that is searched.
        schema: The columns of the rows that are found, without the score.
        k: How many rows are found, at most.
        leaves: All leaves that can have such rows.
        relation: These as they are read.
        others: The leaves whose words count, too.
        is_global: Whether words are counted over all leaves, and not in each one.
        ascii_folding: Whether accents are left out.
    """

    clauses: tuple[Clause, ...]
    text: pa.Field
    schema: pa.Schema
    k: int
    leaves: tuple[SearchLeaf, ...]
    relation: Relation
    others: Relation
    is_global: bool = True
    ascii_folding: bool = False

    @property
    def result_schema(self) -> pa.Schema:
        """The columns of the rows that are found."""
        return pa.schema([*self.schema, SCORE])


def plan_text(
    snapshot: Snapshot,
    query: object,
    *,
    column: str | None = None,
    k: int = 10,
    where: str | Sequence[str] | None = None,
    operator: str = "or",
    fuzziness: int = 0,
    scope: str = "global",
    ascii_folding: bool = False,
    columns: Sequence[str] | None = None,
    table: str | None = None,
) -> TextPlan:
    """Choose the leaves that can have the rows whose texts match best, without opening one.

    The arguments are those of ``SearchedTable.search_text``; errors call the table ``table``.

    Raises:
        SearchOptionRefused: The column has no texts, the query no word, or an option cannot be.
        UnknownColumn: There is no such column.
        PredicateNotEvaluable: A part of the condition is not understood outside of Spark.
    """
    name = table or snapshot.location
    text = _text_column(snapshot, column, name)
    check_least(name, {"k": k})
    for option, value, known in (
        ("operator", operator, ("or", "and")),
        ("scope", scope, ("global", "partition")),
        ("fuzziness", fuzziness, tuple(range(_MOST_EDITS + 1))),
    ):
        if value not in known:
            listed = ", ".join(map(str, known))
            raise SearchOptionRefused(
                table=name, option=option, value=value, why="none of these", expected=listed
            )
    scan = plan_scan(snapshot, where, columns)
    check_names(scan.schema, (SCORE.name,), name)
    check_evaluable(scan.bound, name)
    leaves = search_leaves_of(scan)
    relation = Relation(
        snapshot.location,
        tuple(leaf.read for leaf in leaves),
        pa.schema([text, ROW_ID]),
        snapshot.schema.arrow,
        dict(snapshot.storage_options),
        identity=scan.identity,
    )
    others = replace(relation, leaves=())
    if scope == "global" and len(leaves) < scan.partitions_total:
        every, ours = plan_scan(snapshot), {leaf.object_id for leaf in leaves}
        reads = (leaf.read for leaf in search_leaves_of(every) if leaf.object_id not in ours)
        others = replace(relation, leaves=tuple(reads), identity=every.identity)
    clauses = _clauses(query, operator, fuzziness, ascii_folding=ascii_folding, table=name)
    counts = scope == "global"
    return TextPlan(clauses, text, scan.schema, k, leaves, relation, others, counts, ascii_folding)


def _clauses(
    query: object, operator: str, fuzziness: int, *, ascii_folding: bool, table: str
) -> tuple[Clause, ...]:
    """Read a query: words, ``"a phrase"``, ``+must``, ``-must_not``."""
    clauses: list[Clause] = []
    for sign, phrase, chunk in _CLAUSE.findall(query if isinstance(query, str) else ""):
        pieces = split_words(pa.array([phrase or chunk]), ascii_folding=ascii_folding)
        words = [word for word in pieces.flatten().to_pylist() if word]
        together = [words] if words and (phrase or sign) else [[word] for word in words]
        for some in together:
            edits = fuzziness if len(some) == 1 and not phrase and sign != "-" else 0
            required = "+" if operator == "and" and not sign else sign
            clauses.append(Clause(tuple(some), required, edits))
    if all(clause.sign == "-" for clause in clauses):
        raise SearchOptionRefused(
            table=table,
            option="query",
            value=query,
            why="without a word that rows have to have",
            expected='words, "a phrase", +must or -must_not, such as: lance +table -draft',
        )
    return tuple(clauses)


def _text_column(snapshot: Snapshot, name: str | None, table: str) -> pa.Field:
    """Find the column that is searched."""
    schema = snapshot.schema.arrow
    texts = [column for column in schema if _is_text(column.type)]
    listed = ", ".join(column.name for column in texts) or "it has none"

    def refused(why: str) -> PennonError:
        expected = f"a column of texts: {listed}"
        return SearchOptionRefused(
            table=table, option="column", value=name, why=why, expected=expected
        )

    if name is None:
        definitions = index_definitions(snapshot.metadata).values()
        indexed = {one.field_id for one in definitions if one.type == "INVERTED"}
        having = [column for column in texts if field_id_of(column) in indexed]
        for chosen in (having, texts):
            if len(chosen) == 1:
                return chosen[0]
        raise refused("not clear which one is searched")
    column, is_field = searched_column(schema, name)
    if is_field or not _is_text(column.type):
        raise refused("a field of a struct" if is_field else f"of type {column.type}")
    return column


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.utf8(), pa.large_utf8(), pa.string_view())


# Texts and vectors together.


@dataclass(frozen=True, slots=True)
class HybridPlan:
    """A search by a text and one by a vector, whose ranks are put together.

    Args:
        text: The one; of so many rows as are candidates.
        vectors: The other.
        k: How many rows are found, at most.
        rrf_k: What is added to a rank: the more, the less the first ranks are worth.
    """

    text: TextPlan
    vectors: SearchPlan
    k: int
    rrf_k: int

    @property
    def result_schema(self) -> pa.Schema:
        """The columns of the rows that are found."""
        return pa.schema([*self.text.schema, RELEVANCE])


def plan_hybrid(
    snapshot: Snapshot,
    query: object,
    q: object,
    *,
    text_column: str | None = None,
    vector_column: str | None = None,
    k: int = 10,
    candidates: int | None = None,
    rrf_k: int = 60,
    where: str | Sequence[str] | None = None,
    metric: str | None = None,
    exact: bool = False,
    columns: Sequence[str] | None = None,
    table: str | None = None,
) -> HybridPlan:
    """Plan a search by a text and by a vector.

    The arguments are those of ``SearchedTable.search_hybrid``; errors call the table ``table``.

    Raises:
        PennonError: As ``plan_text`` and ``plan_search``.
    """
    name = table or snapshot.location
    check_least(name, {"k": k, "candidates": candidates, "rrf_k": rrf_k})
    most = max(k, 100) if candidates is None else candidates
    vectors = plan_search(
        snapshot,
        q,
        column=vector_column,
        k=most,
        where=where,
        metric=metric,
        exact=exact,
        columns=(),
        table=table,
    )
    if vectors.is_batch:
        given = f"{len(vectors.queries)} vectors"
        raise SearchOptionRefused(
            table=name, option="q", value=given, why="more than one", expected="one vector"
        )
    text = plan_text(
        snapshot, query, column=text_column, k=most, where=where, columns=columns, table=table
    )
    check_names(text.schema, (RELEVANCE.name,), name)
    # Both of the same leaves at the same versions: a row is the same row in both.
    relation = replace(text.relation, identity=vectors.identity)
    text = replace(text, leaves=vectors.leaves, relation=relation)
    return HybridPlan(text, vectors, k, rrf_k)
