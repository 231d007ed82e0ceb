"""Committing staged fragments to one leaf, beside its main branch or on it.

A detached commit gives the leaf a version that only the manifest names. It is based on an exact
version, so a chain of them never sees what another writer does meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata

from pennon.errors import LeafSchemaMismatch
from pennon.leaf.layout import leaf_numbers, read_layout, renumbered
from pennon.leaf.reconciliation import leaf_fields, match_fields
from pennon.leaf.widening import vacated, widened
from pennon.spec.schema import field_id_of

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        if not column.nullable:
            raise LeafSchemaMismatch(
                column=column.name, leaf=leaf, found="no such column", wanted=column.type
            )
    renamed = vacated(dataset.lance_schema, {column.name for column in columns})
    if renamed is not None:
        dataset = _commit(dataset, lance.LanceOperation.Project(renamed), detached=detached)
    every = (field for top in leaf_fields(dataset) for field in top.walk())
    highest = max((field.number for field in every), default=-1)
    operation = lance.LanceOperation.Merge(
        [fragment.metadata for fragment in dataset.get_fragments()],
        widened(dataset.lance_schema, columns, highest),
    )
    return _commit(dataset, operation, detached=detached)
