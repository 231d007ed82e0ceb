"""Every value of a type, the partitions into which a spec puts them, and what a predicate keeps.

A partition can match where *some* value that the transform puts there satisfies the predicate,
and is decided where *all* of them do. Both are found by trying all values; the transform computes
the partition values, Python compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import datafusion
import pyarrow as pa

from pennon.planning.binding.bind import bind
from pennon.planning.binding.source_columns import source_columns
from pennon.planning.projection.inclusive_projection import SpecProjection, spec_projection
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate
from pennon.spec.partition_spec import PartitionField, PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.expression import Expression
from pennon.transforms.transform import Transform


@dataclass(frozen=True)
class Exhaustive:
    """All values of column ``c``, and the partitions into which a spec puts them."""

    values: list[object]
    schema: pa.Schema
    projection: SpecProjection
    partitions: pa.Table
    members: list[list[object]]

    def check(
        self, sql: str, matches: Callable[[object], bool | None], *, decides: bool = True
    ) -> None:
        bound = bind(parse_predicate(sql), self.schema)
        inclusive = self.projection.inclusive(bound).sql(dialect=DataFusion)
        strict = self.projection.strict(bound).sql(dialect=DataFusion)
        context = datafusion.SessionContext()
        context.register_record_batches("leaves", [self.partitions.to_batches()])
        found = context.sql(f"SELECT {inclusive} AS kept, {strict} AS whole FROM leaves")
        for row, members in zip(found.to_pylist(), self.members, strict=True):
            can = any(matches(value) is True for value in members)
            does = all(matches(value) is True for value in members)
            assert bool(row["kept"]) == can, (
                f"{sql}: {inclusive} for the partition of {members[:3]}"
            )
            assert does or not row["whole"], f"{sql}: {strict} for the partition of {members[:3]}"
            assert bool(row["whole"]) == does or not decides, (
                f"{sql}: {strict} misses {members[:3]}"
            )


def exhaustive(
    values: Sequence[object], transforms: Sequence[Transform], kind: pa.DataType
) -> Exhaustive:
    """Put all values of a type, and NULL, into the partitions of a spec of these transforms."""
    values = [None, *values]
    source = pa.array(values, kind)
    schema = pa.schema([pa.field("c", kind, metadata={"lance:field_id": "0"})])
    fields = [
        PartitionField(
            f"f{n}",
            (0,),
            None if isinstance(transform, Expression) else transform,
            transform.expression_sql if isinstance(transform, Expression) else None,
            transform.result_type([kind]),
        )
        for n, transform in enumerate(transforms)
    ]
    computed = [transform.apply([source]) for transform in transforms]
    members: dict[tuple[object, ...], list[object]] = {}
    columns: dict[tuple[object, ...], list[pa.Scalar]] = {}
    for at, value in enumerate(values):
        # repr keeps NaN one partition, and the zeros two
        key = tuple(repr(array[at].as_py()) for array in computed)
        members.setdefault(key, []).append(value)
        columns.setdefault(key, [array[at] for array in computed])
    table = {
        field.column: pa.array([column[n] for column in columns.values()], field.result_type)
        for n, field in enumerate(fields)
    }
    table["object_id"] = pa.array([f"v1${n}$dataset" for n in range(len(members))])
    projection = spec_projection(
        PartitionSpec(1, tuple(fields)), source_columns(NamespaceSchema(schema), [0]), {}
    )
    return Exhaustive(values, schema, projection, pa.table(table), list(members.values()))
