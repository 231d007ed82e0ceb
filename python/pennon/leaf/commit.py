"""Committing staged fragments to one leaf, beside its main branch or on it.

A detached commit gives the leaf a version that only the manifest names. It is based on an exact
version, so a chain of them never sees what another writer does meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata

from pennon.errors import LeafSchemaMismatch
from pennon.leaf.filling import filled
from pennon.leaf.layout import field_key, leaf_numbers, read_layout, renumbered
from pennon.leaf.reconciliation import FieldMatch, leaf_fields, match_fields
from pennon.leaf.upgrade import upgrade_of
from pennon.leaf.widening import (
    Addition,
    edited,
    highest_number,
    num_fields,
    vacated_names,
    widened,
)
from pennon.spec.initial_default import INITIAL_DEFAULT
from pennon.spec.schema import children_of, field_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    """Give the leaf what it lacks, and the fragments the leaf's numbers and columns."""
    leaf = str(dataset.uri).rstrip("/").rsplit("/", 1)[-1]
    layouts = {part.layout: read_layout(part.layout) for part in staged}
    if staged:
        dataset = _upgraded(dataset, layouts.values(), schema, leaf, detached=detached)
    matches = match_fields(list(schema), leaf_fields(dataset), leaf)
    there = {key: (number, stored) for key, number, stored in leaf_numbers(matches)}
    fragments = []
    for part in staged:
        numbers = {}
        for key, (number, stored) in layouts[part.layout].items():
            at, kept = there.get(key, (None, "nothing"))
            if at is None or kept != stored:
                raise LeafSchemaMismatch(column=f"#{key}", leaf=leaf, found=kept, wanted=stored)
            numbers[number] = at
        lacking = [
            FieldMatch(column, None, ())
            for column in schema
            if INITIAL_DEFAULT in (column.metadata or {})
            and str(field_id_of(column)) not in layouts[part.layout]
        ]
        own = [number for match in lacking for number in _numbers_below(match.wanted, there)]
        for each in part.fragments:
            fragment = FragmentMetadata.from_json(renumbered(each, numbers))
            fragments.append(filled(dataset, fragment, lacking, own, leaf))
    return dataset, fragments


def _numbers_below(
    column: pa.Field, there: Mapping[str, tuple[int | None, str]], above: str = ""
) -> Iterator[int]:
    """The leaf's numbers of a column and the fields below it, parents first."""
    key = field_key(column, above)
    for each in (key, f"{key}.entries"):
        number, _ = there.get(each, (None, ""))
        if number is not None:
            yield number
    for child in children_of(column.type):
        yield from _numbers_below(child, there, key)


def _upgraded(
    dataset: lance.LanceDataset,
    layouts: Iterable[Mapping[str, tuple[int, str]]],
    schema: pa.Schema,
    leaf: str,
    *,
    detached: bool,
) -> lance.LanceDataset:
    """Make the leaf one that takes the namespace's rows; older rows keep what they read as."""
    fields = leaf_fields(dataset)
    matches = match_fields(list(schema), fields, leaf)
    stored = {key: kind for layout in layouts for key, (_, kind) in layout.items()}
    upgrade = upgrade_of(schema, matches, fields, stored, leaf)
    if not upgrade:
        return dataset
    older = [fragment.metadata for fragment in dataset.get_fragments()]
    for each in upgrade.added if older else ():
        if not each.field.nullable and INITIAL_DEFAULT not in (each.field.metadata or {}):
            raise LeafSchemaMismatch(
                column=each.field.name, leaf=leaf, found="no such column", wanted=each.field.type
            )
    again = [Addition(match.wanted, None, is_silent=False) for match in upgrade.replaced]
    old = [match.found.number for match in upgrade.replaced if match.found is not None]
    additions = [*again, *upgrade.added]
    before = dataset.lance_schema
    names = vacated_names(before, additions, old)
    if names or upgrade.nullable:
        loosened = edited(before, names=names, nullable=upgrade.nullable)
        dataset = _commit(dataset, lance.LanceOperation.Project(loosened), detached=detached)
    if not additions:
        return dataset
    wide, numbers = widened(dataset.lance_schema, additions, highest_number(before, older))
    columns = [*upgrade.replaced, *upgrade.filled]
    there = _numbers_of(additions, numbers)
    own = [number for match in columns for number in there[field_id_of(match.wanted)]]
    renamed = [_renamed(match, names) for match in columns]
    operation = lance.LanceOperation.Merge(
        [filled(dataset, each, renamed, own, leaf) for each in older], wide
    )
    dataset = _commit(dataset, operation, detached=detached)
    if not old:
        return dataset
    without = edited(dataset.lance_schema, names={}, dropped=old)
    return _commit(dataset, lance.LanceOperation.Project(without), detached=detached)


def _numbers_of(
    additions: Sequence[Addition], numbers: Sequence[int]
) -> dict[int | None, Sequence[int]]:
    """Give the numbers of each addition, and of the fields below it, by its id."""
    found = {}
    at = 0
    for each in additions:
        count = num_fields(each.field)
        found[field_id_of(each.field)] = numbers[at : at + count]
        at += count
    return found


def _renamed(match: FieldMatch, names: Mapping[int, str]) -> FieldMatch:
    """The match with the name that the leaf's column has now."""
    if match.found is None or match.found.number not in names:
        return match
    arrow = match.found.arrow.with_name(names[match.found.number])
    return replace(match, found=replace(match.found, arrow=arrow))
