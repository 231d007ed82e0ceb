"""The grouping functions of one partition spec: composed time levels first, then the rest.

The levels year, month, day, hour of one column, in any order, are one composed function (reading 31
of ``tests/conformance/readings.tsv``). A level without its coarser levels is a calendar field only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.spec.functions.grouping_function import GroupingFunction
from pennon.transforms.evaluation.source_array import plain_type
from pennon.transforms.registry import IDENTITY, composed_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pennon.spec.partition_spec import PartitionSpec
    from pennon.spec.schema import NamespaceSchema


@dataclass(frozen=True, slots=True)
class SpecFunction:
    """A grouping function of a spec, and the manifest columns that hold its value.

    Args:
        grouping: The function and its source types.
        source_ids: Field ids of the source columns, in the function's order.
        columns: Manifest columns: one, or one per level of composed time, coarse to fine; none
            for a column that the query's predicate fixes.
        fixed: The value of such a column.
    """

    grouping: GroupingFunction
    source_ids: tuple[int, ...]
    columns: tuple[str, ...]
    fixed: pa.Scalar | None = None

    def values(self, leaves: pa.Table) -> pa.Array:
        """Read the function's value for each leaf row of ``__manifest``."""
        if self.fixed is not None:
            return pa.repeat(self.fixed, leaves.num_rows)
        arrays = [leaves.column(column).combine_chunks() for column in self.columns]
        return self.grouping.transform.from_fields(arrays, self.grouping.source_types)


def spec_functions(spec: PartitionSpec, schema: NamespaceSchema) -> tuple[SpecFunction, ...]:
    """List the grouping functions of a spec, in the order of its fields.

    A field whose source column was dropped groups nothing any more: no query can name it.

    Spec: "Storage Partitioned Join".
    """
    functions: list[SpecFunction] = []
    composed_sources: set[int] = set()
    for field in spec.fields:
        types = tuple(type_ for type_ in field.source_types(schema) if type_ is not None)
        if len(types) < len(field.source_ids):
            continue
        levels = _levels_of(spec, field.source_ids)
        composed = composed_of(levels)
        columns = [levels[level.type] for level in composed.levels] if composed else []
        if composed is None or field.column not in columns:
            grouping = GroupingFunction(field.derivation, types)
            functions.append(SpecFunction(grouping, field.source_ids, (field.column,)))
        elif field.source_ids[0] not in composed_sources:
            composed_sources.add(field.source_ids[0])
            grouping = GroupingFunction(composed, types)
            functions.append(SpecFunction(grouping, field.source_ids, tuple(columns)))
    return tuple(functions)


def fixed_functions(
    field_ids: Iterable[int], fixed: Mapping[int, pa.Scalar], schema: NamespaceSchema
) -> tuple[SpecFunction, ...]:
    """List columns that the predicate fixes, as the identity that each of them is in every leaf.

    Rows with another value may lie in the same leaf: the filter takes them out before they meet
    anything that relies on the grouping.

    Args:
        field_ids: Field ids of the columns that are of use.
        fixed: Field id of a column → its value.
        schema: The namespace's schema.
    """
    functions: list[SpecFunction] = []
    for source_id in field_ids:
        source = schema.field_by_id(source_id)
        if source is None or source_id not in fixed:
            continue
        type_ = plain_type(source.field.type)
        if fixed[source_id].type == type_:
            grouping = GroupingFunction(IDENTITY, (source.field.type,))
            functions.append(SpecFunction(grouping, (source_id,), (), fixed[source_id]))
    return tuple(functions)


def _levels_of(spec: PartitionSpec, source_ids: tuple[int, ...]) -> dict[str, str]:
    """Map the level types of one column to their manifest columns."""
    return {
        field.derivation.type: field.column
        for field in spec.fields
        if field.source_ids == source_ids and field.derivation.is_level
    }
