"""Finds the rows whose texts match words best: BM25 over all partitions that the table has.

A text is split into words: runs of letters, marks and digits of any script, in lower case; no word
is stemmed or left out. A row's score is the sum over the words of the query of
``ln(1 + (N - df + .5) / (df + .5)) * tf * 2.2 / (tf + 1.2 * (.25 + .75 * length / mean))``, as in
Lance. N, df and the mean length are those of all rows of the table's version that have a word,
whatever the filter. A phrase scores as its words do. Texts that are NULL match nothing.

What was split of a leaf at a version is kept, as long as there is room, for the next query.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import Cache, storage_identity
from pennon.errors import PennonError, SearchOptionRefused
from pennon.execution import LeafRead, Relation, run_ahead
from pennon.execution.batches import at_once
from pennon.leaf.dataset import leaf_key
from pennon.leaf.read.metadata_columns import ROW_ID
from pennon.manifest.format.properties import index_definitions
from pennon.planning import plan_scan
from pennon.planning.binding.bound_predicate import check_evaluable
from pennon.search.nearest import nearest_found, read_found
from pennon.search.search_plan import (
    check_least,
    check_names,
    plan_search,
    search_leaves_of,
)
from pennon.search.vectors import searched_column
from pennon.spec.schema import field_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pennon.manifest import Snapshot
    from pennon.search.search_plan import SearchLeaf, SearchPlan

__all__ = [
    "RELEVANCE",
    "SCORE",
    "HybridPlan",
    "TextPlan",
    "best_rows",
    "plan_hybrid",
    "plan_text",
]

SCORE: Final = pa.field("_score", pa.float32(), nullable=False)
"""How well a row's text matches."""
RELEVANCE: Final = pa.field("_relevance_score", pa.float32(), nullable=False)
"""How far in front a row is among those of several searches."""
_SATURATION: Final = 1.2
_OF_LENGTH: Final = 0.75
_MOST_EDITS: Final = 2
_LEAF_BYTES: Final = 32 << 20
_KEPT_BYTES: Final = 256 << 20
_NO_WORD: Final = r"[^\p{L}\p{M}\p{N}]+"
_CLAUSE: Final = re.compile(r'([+-]?)(?:"([^"]*)"|(\S+))')


# Words: of texts, and of queries.


class _Postings(NamedTuple):
    """The documents that have a word, ascending, and how many times each has it."""

    docs: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Block:
    """The words of some rows of a leaf; those without a word are not in it.

    Args:
        ids: Lance's ids of the rows.
        lengths: How many words each has.
        words: All distinct words.
        first: Of each word, where its places begin; and where the last one's end.
        docs: The row of each place, by word.
        places: The number of each place within its row.
    """

    ids: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int32]
    words: pa.Array
    first: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]

    @classmethod
    def of(cls, texts: pa.Array, ids: npt.NDArray[np.uint64], *, ascii_folding: bool) -> _Block:
        pieces = _split(texts, ascii_folding=ascii_folding)
        words, rows = pieces.flatten(), pc.list_parent_indices(pieces).to_numpy()
        is_word = np.asarray(pc.not_equal(words, ""))
        rows = rows[is_word]
        encoded = words.filter(pa.array(is_word)).dictionary_encode()
        codes = encoded.indices.to_numpy()
        counts = np.bincount(rows, minlength=len(texts))
        has_words = counts > 0
        lengths = counts[has_words]
        docs = (np.cumsum(has_words) - 1)[rows]
        places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        order = np.argsort(codes, kind="stable")
        by_word = np.bincount(codes, minlength=len(encoded.dictionary))
        return cls(
            ids[has_words],
            lengths.astype(np.int32),
            encoded.dictionary,
            np.concatenate([[0], np.cumsum(by_word)]),
            docs[order].astype(np.int32),
            places[order].astype(np.int32),
        )

    @property
    def nbytes(self) -> int:
        arrays = (self.ids, self.lengths, self.first, self.docs, self.places)
        return int(sum(array.nbytes for array in arrays) + self.words.nbytes)

    def find(self, word: str, edits: int) -> dict[str, int]:
        """Find a word, and those that so many edits make of it."""
        if not edits:
            at = pc.index(self.words, word).as_py()
            return {word: at} if at >= 0 else {}
        numbers = _edited(self.words, word, edits)
        return dict(zip(self.words.take(numbers).to_pylist(), numbers.tolist(), strict=True))

    def postings(self, number: int) -> _Postings:
        docs = self.docs[slice(*self.first[number : number + 2])].astype(np.int64)
        distinct, times = np.unique(docs, return_counts=True)
        return _Postings(distinct, times)

    def following(self, words: Sequence[str]) -> dict[str, _Postings]:
        """Find the rows that have words one after the other, and how often they have each."""
        numbers = [self.find(word, 0).get(word) for word in words]
        begins: npt.NDArray[np.int64] | None = None
        for ahead, number in enumerate(numbers):
            if number is None:
                return {}
            chosen = slice(*self.first[number : number + 2])
            keys = (self.docs[chosen].astype(np.int64) << 32) + self.places[chosen] - ahead
            begins = keys if begins is None else np.intersect1d(begins, keys)
        docs = np.unique((np.empty(0, np.int64) if begins is None else begins) >> 32)
        postings = {}
        for word, number in zip(words, numbers, strict=True):
            if number is not None:
                having, times = self.postings(number)
                postings[word] = _Postings(docs, times[np.searchsorted(having, docs)])
        return postings


def _split(texts: pa.Array, *, ascii_folding: bool) -> pa.Array:
    """Split texts at whatever is in no word; pieces may be empty."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is False:
        texts = pc.utf8_normalize(texts, "NFKD" if ascii_folding else "NFC")
        if ascii_folding:
            texts = pc.replace_substring_regex(texts, r"\p{M}+", "")
    return pc.split_pattern_regex(pc.utf8_lower(texts), _NO_WORD)


def _edited(words: pa.Array, word: str, edits: int) -> npt.NDArray[np.int64]:
    """Choose the words that are at most so many inserted, removed or other letters away."""
    sizes = pc.utf8_length(words).to_numpy()
    at = np.flatnonzero(np.abs(sizes - len(word)) <= edits)
    width = len(word) + edits
    padded = "".join(pc.utf8_rpad(words.take(at), width, padding="\0").to_pylist())
    letters = np.frombuffer(padded.encode("utf-32-le"), np.uint32).reshape(-1, width)
    before = np.tile(np.arange(width + 1), (len(at), 1))
    for number, letter in enumerate(word, 1):
        now = np.full_like(before, number)
        is_other = letters != ord(letter)
        for place in range(1, width + 1):
            least = np.minimum(before[:, place], now[:, place - 1]) + 1
            now[:, place] = np.minimum(least, before[:, place - 1] + is_other[:, place - 1])
        before = now
    is_near: npt.NDArray[np.bool_] = before[np.arange(len(at)), sizes[at]] <= edits
    return at[is_near]


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a query: a word, or words that stand one after the other.

    Args:
        words: The words.
        sign: ``+`` where rows must match, ``-`` where they must not, else empty.
        edits: How many edits away a word may be.
    """

    words: tuple[str, ...]
    sign: str
    edits: int = 0

    def matches(self, block: _Block) -> list[tuple[str, _Postings]]:
        """Give the words of a block that match, with their rows."""
        if len(self.words) > 1:
            having = block.following(self.words)
            return [(word, having[word]) for word in self.words if word in having]
        words = block.find(self.words[0], self.edits)
        return [(word, block.postings(words[word])) for word in sorted(words)]


def _clauses(
    query: object, operator: str, fuzziness: int, *, ascii_folding: bool, table: str
) -> tuple[_Clause, ...]:
    """Read a query: words, ``"a phrase"``, ``+must``, ``-must_not``."""
    clauses: list[_Clause] = []
    for sign, phrase, chunk in _CLAUSE.findall(query if isinstance(query, str) else ""):
        pieces = _split(pa.array([phrase or chunk]), ascii_folding=ascii_folding)
        words = [word for word in pieces.flatten().to_pylist() if word]
        together = [words] if words and (phrase or sign) else [[word] for word in words]
        for some in together:
            edits = fuzziness if len(some) == 1 and not phrase and sign != "-" else 0
            required = "+" if operator == "and" and not sign else sign
            clauses.append(_Clause(tuple(some), required, edits))
    if all(clause.sign == "-" for clause in clauses):
        raise SearchOptionRefused(
            table=table,
            option="query",
            value=query,
            why="without a word that rows have to have",
            expected='words, "a phrase", +must or -must_not, such as: lance +table -draft',
        )
    return tuple(clauses)


# What is searched.


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

    clauses: tuple[_Clause, ...]
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


# What each leaf has of it.

_KEPT: Final[Cache[tuple[_Block, ...]]] = Cache(
    "words of texts",
    max_bytes=_KEPT_BYTES,
    weigh=lambda blocks: (1 << 10) + sum(block.nbytes for block in blocks),
    share=0.25,
)


class _Hit(NamedTuple):
    """The rows that match by a word: their ids and lengths, and how often they have it."""

    word: str
    ids: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int32]
    times: npt.NDArray[np.int64]


@dataclass(slots=True)
class _Words:
    """What a leaf, or several, have of the words of a query."""

    num_docs: int = 0
    num_words: int = 0
    having: Counter[str] = field(default_factory=Counter)
    hits: list[_Hit] = field(default_factory=list)

    def add_block(self, block: _Block, clauses: Sequence[_Clause]) -> None:
        """Count a block's words, and find its rows that match."""
        self.num_docs += len(block.ids)
        self.num_words += int(block.lengths.sum())
        any_of = np.zeros(len(block.ids), bool)
        all_of = np.ones(len(block.ids), bool)
        scored: list[tuple[str, _Postings]] = []
        having: dict[str, int] = {}
        for clause in clauses:
            matched = np.zeros(len(block.ids), bool)
            postings = clause.matches(block)
            for _, (docs, _) in postings:
                matched[docs] = True
            if clause.sign == "-":
                all_of &= ~matched
                continue
            if clause.sign == "+":
                all_of &= matched
            any_of |= matched
            scored += postings
            if len(clause.words) > 1:  # each counts where the phrase is not, too
                alone = [_Clause((word,), "").matches(block) for word in clause.words]
                postings = list(chain.from_iterable(alone))
            having |= {word: len(docs) for word, (docs, _) in postings}
        self.having.update(having)
        all_of &= any_of
        for word, (docs, times) in scored:
            kept = all_of[docs]
            if kept.any():
                rows = docs[kept]
                self.hits.append(_Hit(word, block.ids[rows], block.lengths[rows], times[kept]))

    def scores(self, of: _Words) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]:
        """Give the rows that match, ascending, and their scores by the counts of all leaves."""
        if not self.hits:
            return np.empty(0, np.uint64), np.empty(0, np.float32)
        mean = of.num_words / of.num_docs
        parts = []
        for word, _, lengths, times in self.hits:
            rare = np.log1p((of.num_docs - of.having[word] + 0.5) / (of.having[word] + 0.5))
            long = _SATURATION * (1 - _OF_LENGTH + _OF_LENGTH * lengths / mean)
            parts.append(rare * times * (_SATURATION + 1) / (times + long))
        ids, at = np.unique(np.concatenate([hit.ids for hit in self.hits]), return_inverse=True)
        added = np.bincount(at, np.concatenate(parts), len(ids))
        return ids, added.astype(np.float32)


def _blocks(plan: TextPlan, relation: Relation, leaf: LeafRead) -> Iterator[_Block]:
    """Give the words of all rows of a leaf, which were kept or are read."""
    key = leaf_key(
        relation.namespace,
        leaf.location,
        leaf.version,
        storage=storage_identity(relation.storage_options),
        table=relation.identity,
        detail=f"words {plan.text} {plan.text.metadata} {plan.ascii_folding}",
    )
    kept = None if key is None else _KEPT.peek(key)
    if kept is not None:
        yield from kept
        return
    made: list[_Block] = []
    is_whole, left = key is not None, _LEAF_BYTES
    every = replace(relation, leaves=(replace(leaf, residual=None, steps=None),))
    for batch in run_ahead(every).batches:
        texts, ids = batch.columns
        rows = ids.to_numpy().astype(np.uint64)
        block = _Block.of(texts, rows, ascii_folding=plan.ascii_folding)
        yield block
        left -= block.nbytes
        is_whole = is_whole and left > 0
        made = [*made, block] if is_whole else []
    if is_whole and key is not None:
        _KEPT.keep(key, tuple(made))


def _words(
    plan: TextPlan, relation: Relation, read: LeafRead, *, is_counted_only: bool = False
) -> _Words:
    """Read what one leaf has, and leave out the rows that do not pass its filter."""
    words = _Words()
    for block in _blocks(plan, relation, read):
        words.add_block(block, plan.clauses)
    if is_counted_only:
        words.hits.clear()
    if words.hits and read.residual is not None:
        passing = replace(relation, leaves=(read,), schema=pa.schema([ROW_ID]))
        ids = [batch.column(0).to_numpy() for batch in run_ahead(passing).batches]
        kept = np.concatenate([np.empty(0, np.uint64), *(one.astype(np.uint64) for one in ids)])
        passes = [np.isin(hit.ids, kept) for hit in words.hits]
        words.hits = [
            _Hit(hit.word, hit.ids[at], hit.lengths[at], hit.times[at])
            for hit, at in zip(words.hits, passes, strict=True)
        ]
    return words


# The best of all.

_FOUND: Final = pa.schema([SCORE, pa.field("leaf", pa.int32()), pa.field("_rowid", pa.uint64())])


def _best(plan: TextPlan) -> pa.Table:
    """Find the k rows that match best, by score, leaf and row id."""
    counted_only = partial(_words, plan, plan.others, is_counted_only=True)
    others = list(at_once(counted_only, plan.others.leaves))
    reads = [leaf.read for leaf in plan.leaves]
    by_leaf = list(at_once(partial(_words, plan, plan.relation), reads))
    total = _Words()
    for words in (*others, *by_leaf):
        total.num_docs += words.num_docs
        total.num_words += words.num_words
        total.having.update(words.having)
    parts = []
    for leaf, words in zip(plan.leaves, by_leaf, strict=True):
        ids, scores = words.scores(total if plan.is_global else words)
        leaves = np.full(len(ids), leaf.ordinal, np.int32)
        parts.append(_first(pa.table([scores, leaves, ids], _FOUND), plan.k))
    return _first(pa.concat_tables([_FOUND.empty_table(), *parts]), plan.k)


def _first(rows: pa.Table, k: int) -> pa.Table:
    """Choose the rows of the highest scores, ties by leaf and row id."""
    score, leaf, row_id = (column.to_numpy() for column in rows.columns)
    return rows.take(np.lexsort((row_id, leaf, -score))[:k])


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


def _fused(plan: HybridPlan) -> pa.Table:
    """Find rows by text and by vector, and put their ranks together."""
    nearest, _ = nearest_found(plan.vectors)
    relevance: dict[tuple[int, int], float] = {}
    for ranked in (_best(plan.text), nearest):
        keys = zip(ranked["leaf"].to_pylist(), ranked["_rowid"].to_pylist(), strict=True)
        for rank, key in enumerate(keys):
            relevance[key] = relevance.get(key, 0.0) + 1 / (plan.rrf_k + rank)
    leaves, ids = zip(*relevance, strict=True) if relevance else ((), ())
    rows = pa.table([list(relevance.values()), leaves, ids], _FOUND.names).cast(_FOUND)
    return _first(rows, plan.k)


def best_rows(plan: TextPlan | HybridPlan) -> pa.Table:
    """Find the rows that match best, and read their columns.

    Args:
        plan: The search.

    Returns:
        Rows of the plan's ``result_schema`` in its plain types, the best first.

    Raises:
        LeafMissing: A leaf's files are gone: what the others have is no answer.
        PredicateNotEvaluable: Lance and DataFusion do not understand a filter.
    """
    if isinstance(plan, TextPlan):
        text, score, best = plan, SCORE, _best(plan)
    else:
        text, score, best = plan.text, RELEVANCE, _fused(plan)
    relation = replace(text.relation, schema=text.schema)
    rows = read_found(relation, text.leaves, best["leaf"], best["_rowid"])
    return rows.append_column(score, best[SCORE.name])
