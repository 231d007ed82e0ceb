"""Prunes leaves and rows by the values of a replicated part, before they are read.

A key is the hash of a leaf's partition value; two values of one hash only keep more. NULL rules: a
part's NULLs have no partner; a leaf whose key is NULL has rows of which the transform makes NULL:
only an expression does of what is not NULL.

Of the other leaves the values become a condition on the rows: a list of few, or the range of many.
Lance reads the filtered column for it, and of the others what is left; that is faster where little
is left, and takes twice the time where much is. So it is done only where the values are few of
those that they were chosen from, each once: a key of which a condition left few. Where they are
very few, the columns of other conditions need not be read for all rows either: these come after.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import PartitionExpressionFailed
from pennon.execution.fragment import KEPT, RareFirst
from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.condition import condition
from pennon.predicate.dialect import DataFusion
from pennon.transforms.evaluation.murmur3 import murmur3

if TYPE_CHECKING:
    from pennon.execution.fragment import LeafPruning, LeafRead, Relation, RowFilter
    from pennon.execution.replicated_rows import ReplicatedRows

_LOG = logging.getLogger(__name__)
# More values than this are seldom missing in any partition.
_MOST_ROWS: Final = 2_000_000
# A list is written once per relation, and read by Lance for each leaf: 3 µs per value.
_MOST_VALUES: Final = 2000
_MOST_WRITTEN: Final = 50_000
_FEWEST_OF_RUN: Final = 2
# The part of the values that was chosen, at most.
_SHARE: Final = 8
# Of more than this part of the rows, all columns are read about as fast as one before the others.
_RARE_SHARE: Final = 32


def pruned(
    relations: Sequence[Relation],
    prunings: Sequence[LeafPruning],
    parts: Sequence[ReplicatedRows],
) -> list[Relation]:
    """Leave out the leaves that no row of a part can have a partner in.

    Args:
        relations: What the fragment reads.
        prunings: What rules out leaves of them.
        parts: The rows of its parts.
    """
    kept = [[True] * len(relation.leaves) for relation in relations]
    for pruning in prunings:
        rows = parts[pruning.part]
        if sum(batch.num_rows for batch in rows.batches) > _MOST_ROWS:
            continue
        possible = _possible_keys(pruning, rows)
        if possible is None:
            continue
        flags = kept[pruning.relation]
        kept[pruning.relation] = [
            is_kept and key in possible for is_kept, key in zip(flags, pruning.keys, strict=True)
        ]
    return [
        relation
        if all(flags)
        else replace(
            relation,
            leaves=tuple(
                leaf for leaf, is_kept in zip(relation.leaves, flags, strict=True) if is_kept
            ),
        )
        for relation, flags in zip(relations, kept, strict=True)
    ]


def _possible_keys(pruning: LeafPruning, rows: ReplicatedRows) -> set[int | None] | None:
    """Compute the keys of the leaves that may have a partner; None where that fails for a row."""
    names = list(dict.fromkeys(pruning.columns))  # two columns may be compared with one
    table = pa.Table.from_batches(rows.batches, rows.schema).select(names)
    values = table.drop_null().group_by(names).aggregate([])
    if not values.num_rows:
        return {KEPT}
    sources = [values.column(name) for name in pruning.columns]
    try:
        return {KEPT, *murmur3(pruning.transform.apply(sources)).to_pylist()}
    except (PartitionExpressionFailed, pa.ArrowInvalid) as error:
        # No leaf has such a row, or it could not have been written (an hour has to fit an INT); it
        # is no reason to fail.
        _LOG.info("no partitions are left out at run time: %s", error)
        return None


def filtered(
    relations: Sequence[Relation],
    filters: Sequence[RowFilter],
    parts: Sequence[ReplicatedRows],
) -> list[Relation]:
    """Add to what the rows of relations have to satisfy that a row of a part is their partner.

    Args:
        relations: What the fragment reads.
        filters: What rules out rows of them.
        parts: The rows of its parts.
    """
    pruned = list(relations)
    for filter_ in filters:
        relation, rows = pruned[filter_.relation], parts[filter_.part]
        values = _few_values(filter_, rows)
        if values is None:
            continue
        if not len(values):
            pruned[filter_.relation] = replace(relation, leaves=())
            continue
        key_condition = _condition(filter_, values, len(relation.leaves))
        if key_condition is not None:
            is_rare = len(values) * _RARE_SHARE <= filter_.chosen_from
            leaves = tuple(
                _narrowed(leaf, key_condition, is_rare=is_rare) for leaf in relation.leaves
            )
            pruned[filter_.relation] = replace(relation, leaves=leaves)
    return pruned


def _narrowed(leaf: LeafRead, key_condition: str, *, is_rare: bool) -> LeafRead:
    """Add a condition on a key, as the first step where it leaves few rows."""
    residual, steps = leaf.residual, leaf.steps
    if steps is not None:
        steps = replace(steps, rare=_both(steps.rare, key_condition))
    elif residual is not None and is_rare:
        steps = RareFirst(key_condition, residual)
    return replace(leaf, residual=_both(residual, key_condition), steps=steps)


def _few_values(row_filter: RowFilter, rows: ReplicatedRows) -> pa.Array | None:
    """Give the values of a part's column; None where they are many, or the column is no key."""
    num_rows = sum(batch.num_rows for batch in rows.batches)
    if num_rows * _SHARE > 2 * row_filter.chosen_from:
        return None
    at = rows.schema.get_field_index(row_filter.column)
    data_type = rows.schema.field(at).type
    columns = pa.chunked_array([batch.column(at) for batch in rows.batches], data_type).drop_null()
    values = pc.unique(columns)
    is_key = 2 * len(values) >= len(columns)
    return values if is_key and len(values) * _SHARE <= row_filter.chosen_from else None


def _condition(row_filter: RowFilter, values: pa.Array, num_leaves: int) -> str | None:
    """Write a range where few other values are between them, else a list; None where many are."""
    column = exp.column(row_filter.name, quoted=True)
    # The days of a year: of these a range is as exact, and faster.
    if len(values) > _FEWEST_OF_RUN and _is_run(values):
        return _range(column, values)
    if len(values) <= _MOST_VALUES and len(values) * num_leaves <= _MOST_WRITTEN:
        is_one_of = condition(Comparison(Operator.IN, tuple(values)), column)
        return is_one_of.sql(dialect=DataFusion)
    if not pa.types.is_integer(values.type) or _width(values) * _SHARE > row_filter.chosen_from:
        return None
    return _range(column, values)


def _is_run(values: pa.Array) -> bool:
    """Whether different values follow each other without a gap."""
    if pa.types.is_date32(values.type):
        return _width(values.view(pa.int32())) == len(values)
    return pa.types.is_integer(values.type) and _width(values) == len(values)


def _width(values: pa.Array) -> int:
    ends = pc.min_max(values)
    return int(ends["max"].as_py()) - int(ends["min"].as_py()) + 1


def _range(column: exp.Column, values: pa.Array) -> str:
    ends = pc.min_max(values)
    bounds = (
        condition(Comparison(Operator.GREATER_OR_EQUAL, (ends["min"],)), column),
        condition(Comparison(Operator.LESS_OR_EQUAL, (ends["max"],)), column),
    )
    return exp.and_(*bounds).sql(dialect=DataFusion)


def _both(residual: str | None, key_condition: str) -> str:
    return key_condition if residual is None else f"({residual}) AND ({key_condition})"
