"""The finest grouping to which all spec versions of a scan's chosen partitions reduce.

A scan over bucket(8) and bucket(16) partitions groups by bucket(8); over months and days by
months; a field that only one of the versions has is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.spec.functions.spec_functions import SpecFunction, fixed_functions, spec_functions
from pennon.spec.partition_spec import leaf_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.spec.functions.grouping_function import GroupingFunction
    from pennon.spec.partition_spec import PartitionSpec
    from pennon.spec.schema import NamespaceSchema


@dataclass(frozen=True, slots=True)
class LayoutFunction:
    """A grouping function on columns of one namespace, by their field ids."""

    grouping: GroupingFunction
    source_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the chosen partitions of one scan can be grouped.

    Args:
        functions: The finest common grouping functions, none reducing to another of them.
        versions: For each spec version among the chosen partitions, its own functions.
    """

    functions: tuple[LayoutFunction, ...]
    versions: Mapping[int, tuple[SpecFunction, ...]]

    def spec_functions(self) -> Iterator[tuple[int, SpecFunction]]:
        """List the functions of each spec version, with the version."""
        for version, own in self.versions.items():
            yield from ((version, function) for function in own)

    def values(self, function: LayoutFunction, leaves: pa.Table) -> pa.Array:
        """Compute the value of a function for each chosen leaf, whatever its spec version.

        Args:
            function: One of ``functions``, or anything to which one of them reduces.
            leaves: Rows of ``__manifest`` with ``object_id`` and the partition columns.
        """
        return self._merged(
            leaves,
            {version: _computed(own, function, leaves) for version, own in self.versions.items()},
        )

    def _merged(self, leaves: pa.Table, by_version: Mapping[int, pa.Array]) -> pa.Array:
        if len(by_version) == 1:
            return next(iter(by_version.values()))
        merged: pa.Array | None = None
        for version, values in by_version.items():
            if merged is None:
                merged = values
                continue
            of_version = pc.starts_with(leaves.column("object_id"), leaf_prefix(version))
            merged = pc.if_else(of_version.combine_chunks(), values, merged)
        if merged is None:
            return pa.nulls(leaves.num_rows)
        return merged


def layout_of(
    specs: Mapping[int, PartitionSpec],
    schema: NamespaceSchema,
    leaves: pa.Table,
    fixed: Mapping[int, pa.Scalar] | None = None,
) -> Layout:
    """Find the layout of the chosen partitions.

    Args:
        specs: All partition specs of the namespace.
        schema: The namespace's schema.
        leaves: The chosen rows of ``__manifest``; without any, the newest spec counts.
        fixed: Field ids of columns that have one value in all rows that the query keeps. A spec
            version without a field of such a column is grouped by the value itself.

    Spec: "Storage Partitioned Join".
    """
    names = leaves.column("object_id")
    chosen = {
        version
        for version in specs
        if pc.any(pc.starts_with(names, leaf_prefix(version)), min_count=0).as_py()
    } or {max(specs)}
    versions = {version: spec_functions(specs[version], schema) for version in sorted(chosen)}
    if fixed and len(specs) > 1:
        # Of all versions: what is left after pruning may be the one without a field of the column.
        partitioned_by = {
            source
            for spec in specs.values()
            for field in spec.fields
            for source in field.source_ids
        }
        for version, own in versions.items():
            missing = sorted(partitioned_by.difference(function.source_ids[0] for function in own))
            versions[version] = (*own, *fixed_functions(missing, fixed, schema))
    candidates: list[LayoutFunction] | None = None
    for own in versions.values():
        mine = [LayoutFunction(function.grouping, function.source_ids) for function in own]
        candidates = finest(mine) if candidates is None else common_functions(candidates, mine)
    return Layout(tuple(candidates or ()), versions)


def common_functions(
    left: Sequence[LayoutFunction], right: Sequence[LayoutFunction]
) -> list[LayoutFunction]:
    """List the finest functions to which functions of both sides reduce."""
    common_ones: list[LayoutFunction] = []
    for mine in left:
        for theirs in right:
            if mine.source_ids != theirs.source_ids:
                continue
            common = mine.grouping.common_reduction(theirs.grouping)
            if common is not None:
                common_ones.append(LayoutFunction(common, mine.source_ids))
    common_ones += composed_of_identities(left, right)
    common_ones += composed_of_identities(right, left)
    return finest(common_ones)


def composed_of_identities(
    identities: Sequence[LayoutFunction], targets: Sequence[LayoutFunction]
) -> list[LayoutFunction]:
    """List the functions of several columns whose columns are all there as identities."""
    columns = {function.source_ids[0] for function in identities if function.grouping.is_identity}
    return [
        target
        for target in targets
        if len(target.source_ids) > 1 and columns.issuperset(target.source_ids)
    ]


def finest(functions: Sequence[LayoutFunction]) -> list[LayoutFunction]:
    """Leave out every function to which another one on the same columns reduces."""
    kept: list[LayoutFunction] = []
    for position, function in enumerate(functions):
        others = [*kept, *functions[position + 1 :]]
        if not any(
            other.source_ids == function.source_ids and other.grouping.reduces_to(function.grouping)
            for other in others
        ):
            kept.append(function)
    return kept


def _computed(own: Sequence[SpecFunction], target: LayoutFunction, leaves: pa.Table) -> pa.Array:
    for function in own:
        if function.source_ids == target.source_ids and function.grouping.reduces_to(
            target.grouping
        ):
            return function.grouping.reduce(function.values(leaves), target.grouping)
    by_column = {
        function.source_ids[0]: function for function in own if function.grouping.is_identity
    }
    sources = [by_column[source_id].values(leaves) for source_id in target.source_ids]
    return target.grouping.apply(sources)
