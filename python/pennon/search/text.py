"""Finds the rows whose texts match words best: BM25 over all partitions that the table has.

A row's score is the sum over the words of the query of
``ln(1 + (N - df + .5) / (df + .5)) * tf * 2.2 / (tf + 1.2 * (.25 + .75 * length / mean))``, as in
Lance. N, df and the mean length are those of all rows of the table's version that have a word,
whatever the filter. A phrase scores as its words do. Texts that are NULL match nothing.

The words of rows in an ``INVERTED`` index are in files beside Lance's own, of which a query reads
those of its words: Lance's index counts rows that were deleted, knows no rows of other leaves, and
splits texts otherwise. All other rows are read and split. What was split of a leaf at a version is
kept, as long as there is room, for the next query.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.file import LanceFileReader, LanceFileWriter

from pennon.caching import Cache, storage_identity
from pennon.caching.lance_sessions import file_session, lance_options
from pennon.errors import IndexFilesMissing
from pennon.execution import LeafRead, Relation, run_ahead
from pennon.execution.batches import at_once
from pennon.leaf import LeafSource, LeafViews
from pennon.leaf.dataset import FIRST_DETACHED, leaf_failure, leaf_key, leaf_missing
from pennon.leaf.read.metadata_columns import ROW_ID
from pennon.search.nearest import nearest_found, read_found
from pennon.search.search_plan import RELEVANCE, SCORE, Clause, HybridPlan, TextPlan, split_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import lance
    import numpy.typing as npt
    from lance.dataset import Index

    from pennon.caching import TableKey

__all__ = ["best_rows", "store_words", "stored_blocks"]

_SATURATION: Final = 1.2
_OF_LENGTH: Final = 0.75
_LEAF_BYTES: Final = 32 << 20
_KEPT_BYTES: Final = 256 << 20
_STORED: Final = "words_1"
"""How files of words are called; of another number where texts are split otherwise."""
_STORED_BYTES: Final = 32 << 20
_FEW_PLACES: Final = 1 << 19
"""So many are kept: to read those of a word takes longer than to find them."""
_WHOLE: Final = 1 << 30
_KINDS: Final = ("docs", "places", "words")


# Words: of texts, and of queries.


class _Postings(NamedTuple):
    """The documents that have a word, ascending, and how many times each has it."""

    docs: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Places:
    """Where words are: by word, the row of each place, and its number within the row.

    Args:
        docs: The rows.
        places: The numbers.
    """

    docs: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        return int(self.docs.nbytes + self.places.nbytes)

    def of_word(self, first: int, end: int) -> _Places:
        return _Places(self.docs[first:end], self.places[first:end])


@dataclass(frozen=True, slots=True)
class _StoredPlaces:
    """The same in a file, of which the places of a word are read when they are asked for."""

    path: str
    storage_options: Mapping[str, str] = field(repr=False, hash=False)
    nbytes: int = 0

    def of_word(self, first: int, end: int) -> _Places:
        read = _file(self.path, self.storage_options).read_range(
            first, end - first, batch_size=_WHOLE
        )
        docs, places = read.to_table().columns
        return _Places(docs.to_numpy(), places.to_numpy())


@dataclass(frozen=True, slots=True)
class _Block:
    """The words of some rows of a leaf; those without a word are not in it.

    Args:
        ids: Lance's ids of the rows.
        lengths: How many words each has.
        words: All distinct words.
        first: Of each word, where its places begin; and where the last one's end.
        places: Where the words are.
        is_live: Which rows the version has; None where it has all.
    """

    ids: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int32]
    words: pa.Array
    first: npt.NDArray[np.int64]
    places: _Places | _StoredPlaces
    is_live: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, texts: pa.Array, ids: npt.NDArray[np.uint64], *, ascii_folding: bool) -> _Block:
        pieces = split_words(texts, ascii_folding=ascii_folding)
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
            _Places(docs[order].astype(np.int32), places[order].astype(np.int32)),
        )

    @property
    def nbytes(self) -> int:
        arrays = (self.ids, self.lengths, self.first, self.places)
        return int(sum(array.nbytes for array in arrays) + self.words.nbytes)

    @property
    def num_docs(self) -> int:
        return len(self.ids) if self.is_live is None else int(self.is_live.sum())

    @property
    def num_words(self) -> int:
        lengths = self.lengths if self.is_live is None else self.lengths[self.is_live]
        return int(lengths.sum())

    def find(self, word: str, edits: int) -> dict[str, int]:
        """Find a word, and those that so many edits make of it."""
        if not edits:
            at = pc.index(self.words, word).as_py()
            return {word: at} if at >= 0 else {}
        numbers = _edited(self.words, word, edits)
        return dict(zip(self.words.take(numbers).to_pylist(), numbers.tolist(), strict=True))

    def _places_of(self, number: int) -> _Places:
        return self.places.of_word(int(self.first[number]), int(self.first[number + 1]))

    def _live(self, docs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return docs if self.is_live is None else docs[self.is_live[docs]]

    def postings(self, number: int) -> _Postings:
        docs = self._live(self._places_of(number).docs.astype(np.int64))
        distinct, times = np.unique(docs, return_counts=True)
        return _Postings(distinct, times)

    def following(self, words: Sequence[str]) -> dict[str, _Postings]:
        """Find the rows that have words one after the other, and how often they have each."""
        numbers = [self.find(word, 0).get(word) for word in words]
        begins: npt.NDArray[np.int64] | None = None
        for ahead, number in enumerate(numbers):
            if number is None:
                return {}
            of_word = self._places_of(number)
            keys = (of_word.docs.astype(np.int64) << 32) + of_word.places - ahead
            begins = keys if begins is None else np.intersect1d(begins, keys)
        docs = self._live(np.unique((np.empty(0, np.int64) if begins is None else begins) >> 32))
        postings = {}
        for word, number in zip(words, numbers, strict=True):
            if number is not None:
                having, times = self.postings(number)
                postings[word] = _Postings(docs, times[np.searchsorted(having, docs)])
        return postings


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


def _matches(clause: Clause, block: _Block) -> list[tuple[str, _Postings]]:
    """Give the words of a block that match, with their rows."""
    if len(clause.words) > 1:
        having = block.following(clause.words)
        return [(word, having[word]) for word in clause.words if word in having]
    words = block.find(clause.words[0], clause.edits)
    return [(word, block.postings(words[word])) for word in sorted(words)]


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

    def add_block(self, block: _Block, clauses: Sequence[Clause]) -> None:
        """Count a block's words, and find its rows that match."""
        self.num_docs += block.num_docs
        self.num_words += block.num_words
        any_of = np.zeros(len(block.ids), bool)
        all_of = np.ones(len(block.ids), bool)
        scored: list[tuple[str, _Postings]] = []
        having: dict[str, int] = {}
        for clause in clauses:
            matched = np.zeros(len(block.ids), bool)
            postings = _matches(clause, block)
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
                alone = [_matches(Clause((word,), ""), block) for word in clause.words]
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
    """Give the words of all rows of a leaf, which were kept, stored or are read."""
    key = _leaf_key(plan, relation, leaf, "")
    kept = None if key is None else _KEPT.peek(key)
    if kept is not None:
        yield from kept
        return
    stored, unread = _stored_blocks(plan, relation, leaf)
    yield from stored
    made = list(stored)
    is_whole, left = key is not None, _LEAF_BYTES
    every = replace(leaf, residual=None, steps=None)
    reads = tuple(replace(every, fragments=part) for part in unread) if stored else (every,)
    for batch in run_ahead(replace(relation, leaves=reads)).batches if reads else ():
        texts, ids = batch.columns
        rows = ids.to_numpy().astype(np.uint64)
        block = _Block.of(texts, rows, ascii_folding=plan.ascii_folding)
        yield block
        left -= block.nbytes
        is_whole = is_whole and left > 0
        made = [*made, block] if is_whole else []
    if is_whole and key is not None:
        _KEPT.keep(key, tuple(made))


def _leaf_key(plan: TextPlan, relation: Relation, leaf: LeafRead, segment: str) -> TableKey | None:
    return leaf_key(
        relation.namespace,
        leaf.location,
        FIRST_DETACHED if segment else leaf.version,
        storage=storage_identity(relation.storage_options),
        table=relation.identity,
        detail=segment or f"words {plan.text} {plan.text.metadata} {plan.ascii_folding}",
    )


# The words of rows that are in an index: files beside those of a segment.


def store_words(
    dataset: lance.LanceDataset,
    segment: Index,
    views: LeafViews,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Write the words of a segment's rows beside its files.

    Args:
        dataset: The leaf at a version.
        segment: The segment, which no version has yet.
        views: The column of texts, and the ids of rows.
        storage_options: Given to Lance.

    Raises:
        LeafMissing: The leaf's files are gone.
    """
    if dataset.has_stable_row_ids:
        return
    fragments = {*segment.fragment_ids}
    chosen = [
        (at, at + 1)
        for at, fragment in enumerate(dataset.get_fragments())
        if fragment.fragment_id in fragments
    ]
    source = LeafSource(dataset)
    waiting: list[pa.RecordBatch] = []
    number = num_bytes = 0
    folder, options = f"{dataset.uri}/_indices/{segment.uuid}", lance_options(storage_options)
    for batch in chain.from_iterable(source.batches(views, fragments=at) for at in chosen):
        waiting.append(batch)
        num_bytes += batch.nbytes
        if num_bytes >= _STORED_BYTES:
            _write_block(f"{folder}/{_STORED}_{number}", waiting, options)
            number, num_bytes, waiting = number + 1, 0, []
    _write_block(f"{folder}/{_STORED}_{number}", waiting, options)


def stored_blocks(names: Collection[str]) -> int | None:
    """Tell how many files of words of each kind a segment has; None where one is missing.

    Args:
        names: The names of its files.

    Example:
        >>> stored_blocks(["index.idx"]), stored_blocks(["words_1_0_docs.lance"])
        (0, None)
    """
    own = {name for name in names if name.startswith(_STORED)}
    count = len(own) // len(_KINDS)
    expected = {f"{_STORED}_{number}_{kind}.lance" for number in range(count) for kind in _KINDS}
    return count if own == expected else None


def _write_block(path: str, batches: list[pa.RecordBatch], options: dict[str, str] | None) -> None:
    if not batches:
        return
    texts, ids = pa.Table.from_batches(batches).combine_chunks().columns
    rows = ids.to_numpy().astype(np.uint64)
    block = _Block.of(texts.combine_chunks(), rows, ascii_folding=False)
    places = block.places.of_word(0, int(block.first[-1]))
    columns = {
        "docs": {"id": block.ids, "length": block.lengths},
        "places": {"doc": places.docs, "place": places.places},
        "words": {"word": block.words, "first": block.first[:-1]},
    }
    for kind in _KINDS:
        batch = pa.record_batch(columns[kind])
        with LanceFileWriter(f"{path}_{kind}.lance", batch.schema, storage_options=options) as file:
            file.write_batch(batch)


def _stored_blocks(
    plan: TextPlan, relation: Relation, leaf: LeafRead
) -> tuple[list[_Block], list[tuple[int, int]]]:
    """Give the stored words of a leaf, and the places of the fragments that have none."""
    source = relation.opened(leaf)
    dataset = source.dataset
    fragments = dataset.get_fragments()
    every = [(0, len(fragments))]
    if plan.ascii_folding or dataset.has_stable_row_ids:
        return [], every
    (match,) = LeafViews(pa.schema([plan.text]), relation.namespace_schema).of(dataset).matches
    numbers = {fragment.fragment_id for fragment in fragments}
    blocks: list[_Block] = []
    covered: set[int] = set()
    for index in dataset.describe_indices():
        is_of_text = match.stored is not None and list(index.field_names) == [match.stored.name]
        for segment in index.segments if is_of_text else ():
            own = ({*segment.fragment_ids} & numbers) - covered
            stored = _of_segment(plan, relation, leaf, dataset, segment.uuid) if own else None
            if stored is not None and segment.base_id is None:
                blocks += _live_blocks(relation, leaf, fragments, own, stored)
                covered |= own
    if not blocks:
        return [], every
    unread = [at for at, one in enumerate(fragments) if one.fragment_id not in covered]
    runs = groupby(enumerate(unread), lambda pair: pair[1] - pair[0])
    parts = [[at for _, at in run] for _, run in runs]
    return blocks, [(part[0], part[-1] + 1) for part in parts]


def _of_segment(
    plan: TextPlan, relation: Relation, leaf: LeafRead, dataset: lance.LanceDataset, segment: str
) -> tuple[_Block, ...] | None:
    """Read the words of a segment, but for their places; None where it has none."""
    key = _leaf_key(plan, relation, leaf, segment)
    kept = None if key is None else _KEPT.peek(key)
    if kept is not None:
        return kept
    options = relation.storage_options
    root, _, name = str(dataset.uri).rpartition("/")
    folder = f"{name}/_indices/{segment}"
    names = {path.rpartition("/")[2] for path in file_session(root, options).list(folder)}
    count = stored_blocks(names)
    if count is None:
        raise leaf_missing(dataset, IndexFilesMissing)
    path = f"{root}/{folder}/{_STORED}"
    blocks = [_read_block(f"{path}_{number}", options) for number in range(count)]
    if key is not None and blocks:
        _KEPT.keep(key, tuple(blocks))
    return tuple(blocks) or None


def _file(path: str, options: Mapping[str, str]) -> LanceFileReader:
    root, *below = path.rsplit("/", 4)  # of the table, whose client there is: then the leaf
    return file_session(root, options).open_reader("/".join(below))


def _read_block(path: str, options: Mapping[str, str]) -> _Block:
    docs = _file(f"{path}_docs.lance", options).read_all(batch_size=_WHOLE).to_table()
    words = _file(f"{path}_words.lance", options).read_all(batch_size=_WHOLE).to_table()
    places = _StoredPlaces(f"{path}_places.lance", options)
    end = _file(places.path, options).num_rows()
    return _Block(
        docs["id"].to_numpy(),
        docs["length"].to_numpy(),
        words["word"].combine_chunks(),
        np.append(words["first"].to_numpy(), end),
        places if end > _FEW_PLACES else places.of_word(0, end),
    )


def _live_blocks(
    relation: Relation,
    leaf: LeafRead,
    fragments: Sequence[lance.LanceFragment],
    own: set[int],
    stored: Iterable[_Block],
) -> Iterator[_Block]:
    """Leave out rows that were deleted, and those of fragments that are not the segment's."""
    of_own = [(at, one) for at, one in enumerate(fragments) if one.fragment_id in own]
    changed = [(at, at + 1) for at, one in of_own if one.num_deletions]
    whole = np.array([one.fragment_id for _, one in of_own if not one.num_deletions], np.uint64)
    every = replace(leaf, residual=None, steps=None)
    reads = tuple(replace(every, fragments=part) for part in changed)
    left = [np.empty(0, np.uint64)]
    if reads:
        rows = replace(relation, leaves=reads, schema=pa.schema([ROW_ID]))
        left += [batch.column(0).to_numpy().astype(np.uint64) for batch in run_ahead(rows).batches]
    for block in stored:
        is_live = np.isin(block.ids >> np.uint64(32), whole)
        is_live |= np.isin(block.ids, np.concatenate(left))
        yield replace(block, is_live=None if is_live.all() else is_live)


def _words(
    plan: TextPlan, relation: Relation, read: LeafRead, *, is_counted_only: bool = False
) -> _Words:
    """Read what one leaf has, and leave out the rows that do not pass its filter."""
    words = _Words()
    try:
        for block in _blocks(plan, relation, read):
            words.add_block(block, plan.clauses)
    except (OSError, ValueError) as error:  # of files of words
        failure = leaf_failure(relation.opened(read).dataset, error)
        if failure is None:
            raise
        raise failure from error
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
