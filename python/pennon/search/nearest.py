"""Finds the rows nearest to vectors: in each leaf, then among what all leaves have found.

Each leaf gives no more than the distances and the ids of k rows a query. Of these the nearest of
all leaves are chosen by exact distances, ties by leaf and row id, and only of the chosen ones are
columns read. The filter comes before k in every leaf.

Lance knows no order of ties: of two rows that are as far away it may leave out the one that comes
first. So a leaf is asked for one row more than k, and for more where even its last one is no
farther away than the last of all leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.execution import Relation, run_ahead
from pennon.execution.batches import at_once
from pennon.execution.fragment import read_by_lance
from pennon.leaf import LeafViews
from pennon.leaf.dataset import leaf_failure
from pennon.leaf.read.metadata_columns import ROW_ID
from pennon.search.search_plan import DISTANCE, QUERY_INDEX
from pennon.search.vectors import distances, is_vector, known_vectors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from pennon.leaf.read.leaf_view import LeafView
    from pennon.leaf.read.source import LeafSource
    from pennon.search.search_plan import SearchLeaf, SearchPlan

__all__ = [
    "CANDIDATES",
    "FirstRows",
    "first_rows",
    "merge",
    "nearest_found",
    "nearest_rows",
    "read_found",
    "search_leaves",
    "take",
]

_LEAF: Final = "leaf"
_ROW_ID: Final = ROW_ID.name
CANDIDATES: Final = pa.schema(
    [QUERY_INDEX, DISTANCE, pa.field(_LEAF, pa.int32()), pa.field(_ROW_ID, pa.uint64())]
)
"""What is known of a row before its columns are read: ``leaf`` is its leaf's ordinal."""
_REFUSED: Final = "Invalid user input"


def nearest_rows(plan: SearchPlan, leaves: Sequence[SearchLeaf] | None = None) -> pa.Table:
    """Find the rows of some leaves that are nearest to the queries, and read their columns.

    Args:
        plan: The search.
        leaves: Those that are searched; None for all of the plan.

    Returns:
        Rows of the plan's ``result_schema`` in its plain types, ordered by query and distance.

    Raises:
        LeafMissing: A leaf's files are gone: what the others have is no answer.
        PredicateNotEvaluable: Lance and DataFusion do not understand a filter.
    """
    return nearest_found(plan, leaves)[1]


def nearest_found(
    plan: SearchPlan, leaves: Sequence[SearchLeaf] | None = None
) -> tuple[pa.Table, pa.Table]:
    """Find rows as ``nearest_rows`` does.

    Args:
        plan: The search.
        leaves: Those that are searched; None for all of the plan.

    Returns:
        Where the rows are, of ``CANDIDATES``; and the rows.
    """
    chosen = plan.leaves if leaves is None else leaves
    compared: set[int] = set()
    while True:
        candidates = search_leaves(plan, chosen, compared)
        rows, incomplete = take(plan, chosen, candidates)
        if not incomplete:
            return candidates, rows
        compared |= incomplete


def search_leaves(
    plan: SearchPlan, leaves: Sequence[SearchLeaf], compared: Collection[int] = ()
) -> pa.Table:
    """Find the rows of some leaves that are nearest to the queries.

    Args:
        plan: The search.
        leaves: Those that are searched.
        compared: Ordinals of leaves of which every vector is compared here and not by Lance.

    Returns:
        At most k rows of ``CANDIDATES`` for each query. Where the column may have NULL elements,
        ``take`` tells of which leaves they are not the nearest.

    Raises:
        LeafMissing: A leaf's files are gone.
        PredicateNotEvaluable: Lance and DataFusion do not understand a filter.
    """
    if plan.is_refined_late and len(leaves) > 1:
        return _refined_late(plan, leaves, compared)
    search = _LeafSearch.of(plan, leaves, compared)
    by_leaf: dict[int, pa.Table] = {}
    nearest = CANDIDATES.empty_table()
    waiting = [(leaf, plan.k + 1) for leaf in leaves]
    while waiting:
        for (leaf, _), rows in zip(waiting, at_once(search.nearest, waiting), strict=True):
            by_leaf[leaf.ordinal] = rows
        nearest = merge(by_leaf.values(), plan.k)
        waiting = [
            (leaf, 4 * asked)
            for leaf, asked in waiting
            if _may_hide_ties(plan, by_leaf[leaf.ordinal], asked, nearest)
        ]
    return nearest


def _refined_late(
    plan: SearchPlan, leaves: Sequence[SearchLeaf], compared: Collection[int]
) -> pa.Table:
    """Compute exact distances for the nearest of all leaves only, and not for those of each.

    What an index estimates is not biased: several times k rows that it takes for the nearest hold
    those that are.
    """
    options = replace(plan.options, refine_factor=None)
    wide = replace(plan, k=plan.k * (plan.options.refine_factor or 1), options=options)
    search = _LeafSearch.of(wide, leaves, compared)
    parts = list(at_once(search.nearest, [(leaf, wide.k) for leaf in leaves]))
    nearest = merge(parts, wide.k)
    relation = replace(_base(plan), schema=pa.schema([plan.vector]))
    rows = read_found(relation, leaves, nearest[_LEAF], nearest[_ROW_ID])
    values = rows[plan.vector.name].combine_chunks()
    vectors, is_known = known_vectors(values, plan.vector.type.list_size)
    if not is_known.all():  # rows that do not qualify may have taken the place of others
        incomplete = nearest[_LEAF].to_numpy()[~is_known].tolist()
        return search_leaves(plan, leaves, {*compared, *incomplete})
    query = nearest[QUERY_INDEX.name].to_numpy()
    far = np.empty(len(query), np.float32)
    for number in np.unique(query):
        own = query == number
        far[own] = distances(plan.metric, plan.queries[number], vectors[own])
    at = CANDIDATES.get_field_index(DISTANCE.name)
    return merge([nearest.set_column(at, DISTANCE, pa.array(far))], plan.k)


def merge(parts: Iterable[pa.Table], k: int) -> pa.Table:
    """Choose the k nearest rows of each query among those that were found in several places.

    Args:
        parts: Rows of ``CANDIDATES``.
        k: How many are chosen for each query, at most.

    Returns:
        They, by query, distance, leaf and row id.

    Example:
        >>> part = pa.table([[0, 0], [2.0, 1.0], [0, 1], [7, 5]], CANDIDATES)
        >>> merge([part, part.slice(0, 0)], 1)["_rowid"].to_pylist()
        [5]
    """
    rows = pa.concat_tables([CANDIDATES.empty_table(), *parts]).combine_chunks()
    query, distance, leaf, row_id = (rows[name].to_numpy() for name in CANDIDATES.names)
    order = np.lexsort((row_id, leaf, distance, query))
    sorted_query = query[order]
    first_of_query = np.searchsorted(sorted_query, sorted_query, side="left")
    return rows.take(order[np.arange(len(order)) - first_of_query < k])


def _may_hide_ties(plan: SearchPlan, rows: pa.Table, asked: int, nearest: pa.Table) -> bool:
    """Whether a leaf may have rows beyond those it gave that are as near as the last chosen."""
    query, distance = rows[QUERY_INDEX.name].to_numpy(), rows[DISTANCE.name].to_numpy()
    numbers, counts = np.unique(query, return_counts=True)
    cut = numbers[counts >= asked]
    if not len(cut):
        return False
    last = np.full(len(plan.queries), -np.inf)
    np.maximum.at(last, query, distance)
    bound = np.full(len(plan.queries), -np.inf)
    np.maximum.at(bound, nearest[QUERY_INDEX.name].to_numpy(), nearest[DISTANCE.name].to_numpy())
    return bool((last[cut] <= bound[cut]).any())


@dataclass(frozen=True, slots=True)
class _LeafSearch:
    """A way to search each of some leaves, by several threads at once."""

    plan: SearchPlan
    views: LeafViews
    residuals_of_lance: frozenset[str | None]
    compared: frozenset[int]

    @classmethod
    def of(
        cls, plan: SearchPlan, leaves: Sequence[SearchLeaf], compared: Collection[int]
    ) -> _LeafSearch:
        residuals = {leaf.read.residual: _relation(plan, leaf) for leaf in leaves}
        by_lance = frozenset(
            residual
            for residual, relation in residuals.items()
            if read_by_lance(residual, relation).condition is None
        )
        views = LeafViews(pa.schema([plan.vector]), plan.namespace_schema)
        return cls(plan, views, by_lance, frozenset(compared))

    def nearest(self, asked: tuple[SearchLeaf, int]) -> pa.Table:
        """Find so many rows of a leaf: by Lance where it filters and measures as is requested."""
        plan, (leaf, num_rows) = self.plan, asked
        residual = leaf.read.residual
        is_of_lance = residual in self.residuals_of_lance and plan.metric.is_lances(plan.vector)
        if leaf.ordinal in self.compared or not is_of_lance:
            return _compared(plan, leaf, num_rows)
        source = _opened(plan, leaf)
        view = self.views.of(source.dataset, residual)
        (match,) = view.matches
        if view.is_empty or (match.stored is None and not plan.has_default):
            return CANDIDATES.empty_table()
        if match.stored is None or not _is_alike(match.stored.arrow.type, plan.vector.type):
            return _compared(plan, leaf, num_rows)
        try:
            rows = scan_nearest(plan, source, view, num_rows)
        except (ValueError, OSError) as error:
            if _REFUSED in str(error) and residual is not None:
                return _compared(plan, leaf, num_rows)  # which tells what of the filter it is
            failure = leaf_failure(source.dataset, error)
            if failure is None:
                raise
            raise failure from error
        number = rows.num_rows
        query = rows[QUERY_INDEX.name] if plan.is_batch else np.zeros(number, np.int32)
        places = np.full(number, leaf.ordinal, np.int32)
        return pa.table([query, rows[DISTANCE.name], places, rows[_ROW_ID]], CANDIDATES)


def _is_alike(stored: pa.DataType, expected: pa.DataType) -> bool:
    return is_vector(stored) and (stored.list_size, stored.value_type) == (
        expected.list_size,
        expected.value_type,
    )


def _opened(plan: SearchPlan, leaf: SearchLeaf) -> LeafSource:
    return _relation(plan, leaf).opened(leaf.read)


def scan_nearest(plan: SearchPlan, source: LeafSource, view: LeafView, num_rows: int) -> pa.Table:
    """Have Lance find the rows of a leaf nearest to the queries, the filter first.

    Args:
        plan: The search.
        source: The leaf at the version to read.
        view: The column that is searched as the leaf has it, and the filter.
        num_rows: How many rows are found for each query, at most.

    Returns:
        ``_distance``, ``_rowid`` and for several queries ``query_index``.
    """
    (match,) = view.matches
    options = plan.options
    nearest: dict[str, object] = {
        "column": match.expected.name if match.stored is None else match.stored.name,
        "q": plan.queries if plan.is_batch else plan.queries[0],
        "k": num_rows,
        "metric": str(plan.metric),
        "use_index": not options.exact,
    }
    if options.refine_factor is not None:
        nearest["refine_factor"] = options.refine_factor
    if options.nprobes is not None:
        nearest["minimum_nprobes"] = options.nprobes
    if options.ef is not None:
        nearest["ef"] = max(options.ef, num_rows)
    return source.nearest(view, nearest, [DISTANCE.name])


def _compared(plan: SearchPlan, leaf: SearchLeaf, num_rows: int) -> pa.Table:
    """Compare every vector of a leaf that passes the filter, in batches."""
    stream = run_ahead(_relation(plan, leaf, plan.vector, ROW_ID))
    nearest = CANDIDATES.empty_table()
    for batch in stream.batches:
        vectors, is_known = known_vectors(batch.column(0), plan.vector.type.list_size)
        ids = batch.column(1).to_numpy(zero_copy_only=False)[is_known].astype(np.uint64)
        parts = [nearest]
        for number, query in enumerate(plan.queries):
            far = distances(plan.metric, query, vectors)
            parts.append(_nearest_of(far, ids, number, leaf.ordinal, num_rows))
        nearest = merge(parts, num_rows)
    return nearest


def _nearest_of(
    far: npt.NDArray[np.float32],
    ids: npt.NDArray[np.uint64],
    query: int,
    leaf: int,
    num_rows: int,
) -> pa.Table:
    is_number = ~np.isnan(far)
    far, ids = far[is_number], ids[is_number]
    if len(far) > num_rows:
        is_near = far <= np.partition(far, num_rows - 1)[num_rows - 1]
        far, ids = far[is_near], ids[is_near]
    own = [np.full(len(far), value, np.int32) for value in (query, leaf)]
    return pa.table([own[0], far, own[1], ids], CANDIDATES)


def _relation(plan: SearchPlan, leaf: SearchLeaf, *columns: pa.Field) -> Relation:
    return replace(_base(plan), leaves=(leaf.read,), schema=pa.schema(columns or [plan.vector]))


def _base(plan: SearchPlan) -> Relation:
    return Relation(
        plan.namespace,
        (),
        plan.schema,
        plan.namespace_schema,
        plan.storage_options,
        identity=plan.identity,
    )


def take(
    plan: SearchPlan, leaves: Sequence[SearchLeaf], candidates: pa.Table
) -> tuple[pa.Table, set[int]]:
    """Read the columns of rows that were found.

    Args:
        plan: The search.
        leaves: Those that were searched.
        candidates: What was found, of ``CANDIDATES``.

    Returns:
        The rows in their order; and the ordinals of leaves that have one among them with a NULL
        element in its vector, which does not qualify: these leaves have to be compared.

    Raises:
        LeafMissing: A leaf's files are gone.
    """
    is_checked = plan.may_have_null_elements and plan.vector.name not in plan.schema.names
    columns = [*plan.schema, *([plan.vector] if is_checked else [])]
    relation = replace(_base(plan), schema=pa.schema(columns))
    rows = read_found(relation, leaves, candidates[_LEAF], candidates[_ROW_ID])
    incomplete: set[int] = set()
    if plan.may_have_null_elements:
        vectors = rows[plan.vector.name].combine_chunks()
        _, is_known = known_vectors(vectors, plan.vector.type.list_size)
        incomplete = {*candidates[_LEAF].to_numpy()[~is_known].tolist()}
    rows = rows.select(plan.schema.names).append_column(DISTANCE, candidates[DISTANCE.name])
    if plan.is_batch:
        rows = rows.add_column(0, QUERY_INDEX, candidates[QUERY_INDEX.name])
    return rows, incomplete


def read_found(
    relation: Relation, leaves: Sequence[SearchLeaf], places: pa.ChunkedArray, ids: pa.ChunkedArray
) -> pa.Table:
    """Read columns of single rows, in the order that they are given in.

    Args:
        relation: What is read of the leaves.
        leaves: Those that were searched.
        places: The ordinal of each row's leaf.
        ids: Lance's id of each row.

    Raises:
        LeafMissing: A leaf's files are gone.
    """
    if not len(relation.schema):
        none = pa.StructArray.from_buffers(pa.struct([]), len(ids), [None])
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(none)])
    views = LeafViews(relation.schema, relation.namespace_schema)
    by_ordinal = {leaf.ordinal: leaf for leaf in leaves}
    ordinals, numbers = places.to_numpy(), ids.to_numpy()
    parts = [(one, np.flatnonzero(ordinals == one)) for one in np.unique(ordinals).tolist()]

    def taken(part: tuple[int, npt.NDArray[np.intp]]) -> pa.Table:
        ordinal, positions = part
        distinct, inverse = np.unique(numbers[positions], return_inverse=True)
        source = relation.opened(by_ordinal[ordinal].read)
        return source.take_rows(views, distinct.tolist()).take(inverse)

    rows = pa.concat_tables([views.schema.empty_table(), *at_once(taken, parts)])
    order = np.argsort(np.concatenate([np.empty(0, np.intp), *(at for _, at in parts)]))
    return rows.take(order)


# ``ORDER BY vector_l2_distance(v, …) LIMIT k``: rows that hold the first k by Spark's own order.
#
# Spark sorts what is given here, so that its values decide. It adds DOUBLEs and rounds the distance
# to a FLOAT, and Lance adds FLOATs: what Lance finds hardly farther away than the last row may come
# before it, and is given, too.
#
# NULL rules: a vector that is NULL or has a NULL in it has no distance, and comes first or last as
# the order says; NaN comes behind all numbers. Lance takes a NULL element for 0, and knows no NaN.

_MOST_TIMES: Final = 64  # so many times k rows Lance is asked for, where many are as far away
_BLOCK: Final = 8
_VALUES_AT_ONCE: Final = 1 << 16  # that stay in the caches of a core
_EPSILON: Final = 2.0**-22
_LEAST: Final = 1e-37


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows by their distance.

    Args:
        search: A search by ``l2`` of one query, which asks no index.
        is_nulls_first: Whether rows without a distance come before all others.
    """

    search: SearchPlan
    is_nulls_first: bool


def first_rows(plan: FirstRows) -> pa.Table:
    """Read rows among which are the first k, in any order.

    Args:
        plan: The order.

    Returns:
        Rows of the search's ``schema``: k of them, or few more, or all that there are.

    Raises:
        LeafMissing: A leaf's files are gone.
        PredicateNotEvaluable: Lance and DataFusion do not understand a filter.
    """
    search = plan.search
    parts = [CANDIDATES.empty_table()]
    if plan.is_nulls_first:
        parts += at_once(partial(_without_distance, search), search.leaves)
    chosen = pa.concat_tables(parts)
    if chosen.num_rows < search.k:
        near = _near(search)
        if near is None or near.num_rows < search.k:
            parts = [chosen.slice(0, 0), *at_once(partial(_ordered, plan), search.leaves)]
        else:
            parts = [chosen, near]
        chosen = pa.concat_tables(parts)
    relation = replace(_base(search), schema=search.schema)
    return read_found(relation, search.leaves, chosen[_LEAF], chosen[_ROW_ID])


def _without_distance(search: SearchPlan, leaf: SearchLeaf) -> pa.Table:
    parts, missing = [CANDIDATES.empty_table()], search.k
    for values, ids in _vectors_of(search, leaf):
        if values.null_count or pc.list_flatten(values).null_count:
            _, is_known = known_vectors(values, search.vector.type.list_size)
            of_batch = ids[~is_known][:missing]
            parts.append(_placed(leaf, of_batch, np.zeros(len(of_batch), np.float32)))
            missing -= len(of_batch)
            if not missing:
                break
    return pa.concat_tables(parts)


def _near(search: SearchPlan) -> pa.Table | None:
    """Have Lance find rows that hold the nearest k; None where its distances do not tell them."""
    leaf_search = _LeafSearch.of(search, search.leaves, ())
    rows = CANDIDATES.empty_table()
    for of_leaf in at_once(partial(_near_in_leaf, leaf_search), search.leaves):
        if of_leaf is None:
            return None
        rows = pa.concat_tables([rows, of_leaf])
    rows = rows.filter(pc.field(DISTANCE.name) <= _bound(search, rows))
    if search.may_have_null_elements:
        relation = replace(_base(search), schema=pa.schema([search.vector]))
        vectors = read_found(relation, search.leaves, rows[_LEAF], rows[_ROW_ID])
        values = vectors[search.vector.name].combine_chunks()
        if not known_vectors(values, search.vector.type.list_size)[1].all():
            return None
    return rows


def _near_in_leaf(search: _LeafSearch, leaf: SearchLeaf) -> pa.Table | None:
    asked, plan = search.plan.k + 1, search.plan
    while asked <= _MOST_TIMES * (plan.k + 1):
        rows = search.nearest((leaf, asked))
        far = rows[DISTANCE.name].to_numpy()
        if not np.isfinite(far).all():
            return None
        if len(far) < asked or far.max() > _bound(plan, rows):
            return rows
        asked *= 4
    return None


def _bound(search: SearchPlan, rows: pa.Table) -> float:
    """Give how far away, by Lance, what Spark may take for the k-th nearest is at most."""
    far = np.sort(rows[DISTANCE.name].to_numpy())
    if len(far) < search.k:
        return np.inf
    slack = (search.vector.type.list_size + _BLOCK) * _EPSILON
    return float(far[search.k - 1]) * (1 + slack) + _LEAST


def _ordered(plan: FirstRows, leaf: SearchLeaf) -> pa.Table:
    """Order all rows of a leaf as Spark does, and give the first k."""
    search = plan.search
    dimension = search.vector.type.list_size
    places, fars, firsts = np.empty(0, np.int8), np.empty(0, np.float32), np.empty(0, np.uint64)
    for values, ids in _vectors_of(search, leaf):
        vectors, is_known = known_vectors(values, dimension)
        far = np.zeros(len(ids), np.float32)
        far[is_known] = _distances_of_spark(search.queries[0], vectors)
        place = np.where(np.isnan(far), 2, 1).astype(np.int8)
        place[~is_known] = 0 if plan.is_nulls_first else 3
        places, fars = np.concatenate([places, place]), np.concatenate([fars, far])
        order = np.lexsort((fars, places))[: search.k]
        firsts = np.concatenate([firsts, ids])[order]
        places, fars = places[order], fars[order]
    return _placed(leaf, firsts, fars)


def _vectors_of(
    search: SearchPlan, leaf: SearchLeaf
) -> Iterator[tuple[pa.Array, npt.NDArray[np.uint64]]]:
    """Read the vectors of a leaf's rows that pass the filter, and the rows' ids."""
    for batch in run_ahead(_relation(search, leaf, search.vector, ROW_ID)).batches:
        yield batch.column(0), batch.column(1).to_numpy(zero_copy_only=False).astype(np.uint64)


def _placed(
    leaf: SearchLeaf, ids: npt.NDArray[np.uint64], far: npt.NDArray[np.float32]
) -> pa.Table:
    query, places = (np.full(len(ids), value, np.int32) for value in (0, leaf.ordinal))
    return pa.table([query, far, places, ids], CANDIDATES)


def _distances_of_spark(
    query: npt.NDArray[np.generic], vectors: npt.NDArray[np.generic]
) -> npt.NDArray[np.float32]:
    """Compute distances bit for bit as ``vector_l2_distance``: it adds eight squares at a time."""
    dimension = vectors.shape[1]
    whole = dimension // _BLOCK * _BLOCK
    total = np.zeros(len(vectors))
    step = max(1, _VALUES_AT_ONCE // dimension)
    with np.errstate(all="ignore"):
        for at in range(0, len(vectors), step):
            apart = vectors[at : at + step].astype(np.float64) - query.astype(np.float64)
            squares = apart * apart
            blocks = squares[:, :whole].reshape(len(squares), -1, _BLOCK)
            of_blocks = blocks[..., 0].copy()
            for element in range(1, _BLOCK):
                of_blocks += blocks[..., element]
            for part in (*of_blocks.T, *squares[:, whole:].T):
                total[at : at + step] += part
        return np.sqrt(total).astype(np.float32)
