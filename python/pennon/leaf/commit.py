"""Committing staged fragments to one leaf, beside its main branch or on it.

A detached commit gives the leaf a version that only the manifest names. It is based on an exact
version, so a chain of them never sees what another writer does meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata
from lance.schema import LanceSchema

from pennon.errors import LeafSchemaMismatch
from pennon.leaf.creation import state_field_ids
from pennon.leaf.incoming import plain_field
from pennon.leaf.layout import leaf_numbers, read_layout, renumbered
from pennon.leaf.reconciliation import leaf_fields, match_fields
from pennon.spec.schema import FIELD_ID, children_of, field_id_of, with_children

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.leaf.staged import StagedPartition

__all__ = ["LeafCommit", "append_fragments", "remove_fragments", "replace_fragments"]


@dataclass(frozen=True, slots=True)
class LeafCommit:
    """A version of a leaf and what it holds.

    Args:
        version: Lance's version; detached ones have the highest bit set.
        num_rows: Rows of the version.
        num_bytes: Bytes of its data files; None where Lance does not know.
        num_fragments: Its fragments.
    """

    version: int
    num_rows: int
    num_bytes: int | None
    num_fragments: int

    @classmethod
    def of(cls, dataset: lance.LanceDataset) -> LeafCommit:
        """Count what a version holds."""
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        sizes = [file.file_size_bytes for fragment in fragments for file in fragment.files]
        known = [size for size in sizes if size is not None]
        num_bytes = sum(known) if len(known) == len(sizes) else None
        return cls(dataset.version, dataset.count_rows(), num_bytes, len(fragments))


def append_fragments(
    dataset: lance.LanceDataset,
    staged: Sequence[StagedPartition],
    schema: pa.Schema,
    *,
    detached: bool = True,
) -> lance.LanceDataset:
    """Add staged rows to a leaf.

    Args:
        dataset: The leaf at the version to build on.
        staged: What tasks wrote for this leaf.
        schema: The namespace schema, with its ids; columns that the leaf lacks are added to it.
        detached: Whether to commit beside the main branch.

    Raises:
        LeafSchemaMismatch: The files store a column in another type than the leaf.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    extended, fragments = _prepared(dataset, staged, schema, detached=detached)
    if not fragments:
        return extended
    return _commit(extended, lance.LanceOperation.Append(fragments), detached=detached)


def replace_fragments(
    dataset: lance.LanceDataset,
    staged: Sequence[StagedPartition],
    schema: pa.Schema,
    *,
    detached: bool = True,
) -> lance.LanceDataset:
    """Make a leaf's content exactly the staged rows; arguments as ``append_fragments``."""
    extended, fragments = _prepared(dataset, staged, schema, detached=detached)
    removed = [fragment.fragment_id for fragment in extended.get_fragments()]
    if not removed and not fragments:
        return extended
    if not removed:
        return _commit(extended, lance.LanceOperation.Append(fragments), detached=detached)
    operation = lance.LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=[], new_fragments=fragments
    )
    return _commit(extended, operation, detached=detached)


def remove_fragments(dataset: lance.LanceDataset, *, detached: bool = True) -> lance.LanceDataset:
    """Empty a leaf; older versions keep their rows."""
    removed = [fragment.fragment_id for fragment in dataset.get_fragments()]
    if not removed:
        return dataset
    operation = lance.LanceOperation.Delete(
        updated_fragments=[], deleted_fragment_ids=removed, predicate="true"
    )
    return _commit(dataset, operation, detached=detached)


def _commit(
    dataset: lance.LanceDataset, operation: lance.LanceOperation.BaseOperation, *, detached: bool
) -> lance.LanceDataset:
    return lance.LanceDataset.commit(
        dataset, operation, read_version=dataset.version, detached=detached
    )


def _prepared(
    dataset: lance.LanceDataset,
    staged: Sequence[StagedPartition],
    schema: pa.Schema,
    *,
    detached: bool,
) -> tuple[lance.LanceDataset, list[FragmentMetadata]]:
    """Give the leaf the columns it lacks, and the fragments the leaf's numbers."""
    leaf = str(dataset.uri).rstrip("/").rsplit("/", 1)[-1]
    there = _numbers(dataset, schema, leaf)
    lacking = [
        column for column in schema if there.get(str(field_id_of(column)), (None, ""))[0] is None
    ]
    if lacking and staged:
        dataset = _extended(dataset, lacking, leaf, detached=detached)
        there = _numbers(dataset, schema, leaf)
    fragments = []
    for part in staged:
        numbers = {}
        for key, (number, stored) in read_layout(part.layout).items():
            at, kept = there.get(key, (None, "nothing"))
            if at is None or kept != stored:
                raise LeafSchemaMismatch(column=f"#{key}", leaf=leaf, found=kept, wanted=stored)
            numbers[number] = at
        fragments += [
            FragmentMetadata.from_json(renumbered(each, numbers)) for each in part.fragments
        ]
    return dataset, fragments


def _numbers(
    dataset: lance.LanceDataset, schema: pa.Schema, leaf: str
) -> dict[str, tuple[int | None, str]]:
    matches = match_fields(list(schema), leaf_fields(dataset), leaf)
    return {key: (number, stored) for key, number, stored in leaf_numbers(matches)}


def _extended(
    dataset: lance.LanceDataset, columns: Sequence[pa.Field], leaf: str, *, detached: bool
) -> lance.LanceDataset:
    """Add columns of NULLs to a leaf without touching a file, and state their ids."""
    for column in columns:
        if not column.nullable or _has_map(column.type):
            raise LeafSchemaMismatch(
                column=column.name, leaf=leaf, found="no such column", wanted=column.type
            )
    every = (field for top in leaf_fields(dataset) for field in top.walk())
    numbers = count(max((field.number for field in every), default=-1) + 1)
    ids: dict[int, int] = {}
    added = pa.schema([_numbered(column, numbers, ids) for column in columns])
    # Pickling is Lance's only way to join two of its schemas with their numbers unchanged.
    make, kept = dataset.lance_schema.__reduce__()
    _, new = LanceSchema.from_pyarrow(added).__reduce__()
    operation = lance.LanceOperation.Merge(
        [fragment.metadata for fragment in dataset.get_fragments()], make(*kept, *new[1:])
    )
    merged = _commit(dataset, operation, detached=detached)
    return state_field_ids(merged, ids, detached=detached)


def _numbered(column: pa.Field, numbers: Iterator[int], ids: dict[int, int]) -> pa.Field:
    """Number a new column and the fields below it as Lance shall; ``ids`` collects their ids."""
    number = next(numbers)
    field_id = field_id_of(column)
    if field_id is not None:
        ids[number] = field_id
    children = [_numbered(child, numbers, ids) for child in children_of(column.type)]
    plain = plain_field(column).with_type(with_children(plain_field(column).type, children))
    return plain.with_metadata({**(plain.metadata or {}), FIELD_ID: str(number).encode()})


def _has_map(data_type: pa.DataType) -> bool:
    return pa.types.is_map(data_type) or any(
        _has_map(child.type) for child in children_of(data_type)
    )
