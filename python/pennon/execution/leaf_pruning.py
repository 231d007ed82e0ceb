"""Leaves that are not opened, because no value of a replicated part can be in them.

A key is the hash of a leaf's partition value; two values of one hash only keep more. NULL rules: a
part's NULLs have no partner, and a leaf whose key is NULL has nothing but NULLs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.transforms.murmur3 import murmur3

if TYPE_CHECKING:
    from pennon.execution.fragment import LeafPruning, Relation
    from pennon.execution.replicated_rows import ReplicatedRows

# More values than this are seldom missing in any partition.
_MOST_ROWS: Final = 2_000_000


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
        possible = _keys(pruning, rows)
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


def _keys(pruning: LeafPruning, rows: ReplicatedRows) -> set[int | None]:
    at = rows.schema.get_field_index(pruning.column)
    kind = rows.schema.field(at).type
    values = pc.unique(pa.chunked_array([batch.column(at) for batch in rows.batches], kind))
    values = values.drop_null()
    if not len(values):
        return set()
    return set(murmur3(pruning.transform.apply([values])).to_pylist())
