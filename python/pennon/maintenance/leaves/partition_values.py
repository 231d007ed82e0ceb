"""Partition values of stored rows, computed by DataFusion from the specs' expressions.

This is the second code path beside the writer's: a well-known transform is evaluated as its
derived expression, exactly as the specification writes it. NULL rules are the expressions'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.leaf import scan_leaf
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transforms.registry import expression

__all__ = ["RowValues", "differs", "is_same_value"]


@dataclass(frozen=True, slots=True)
class RowValues:
    """Computes the partition values of rows of one spec.

    Args:
        spec: The partition spec.
        schema: The namespace schema.
        types: The types of the manifest's columns by field id.

    Spec: "Partition Expression", "Supported Transforms".
    """

    spec: PartitionSpec
    schema: NamespaceSchema
    types: Mapping[str, pa.DataType]

    @property
    def fields(self) -> tuple[PartitionField, ...]:
        """The fields whose source columns are all in the schema; others cannot be computed."""
        return tuple(
            field
            for field in self.spec.fields
            if all(self.schema.field_by_id(source) is not None for source in field.source_ids)
        )

    @property
    def columns(self) -> pa.Schema:
        """The columns of the namespace schema that hold the sources."""
        names = []
        for field in self.fields:
            for source in field.source_ids:
                column = self.schema.field_by_id(source)
                if column is not None and column.path[0] not in names:
                    names.append(column.path[0])
        return pa.schema([self.schema.arrow.field(name) for name in names])

    def scan(self, dataset: lance.LanceDataset) -> Iterator[pa.RecordBatch]:
        """Stream the source columns of a leaf."""
        return scan_leaf(dataset, self.columns, namespace_schema=self.schema.arrow)

    def of(self, rows: pa.RecordBatch | pa.Table) -> dict[str, pa.Array]:
        """Compute the values of rows of ``columns``, by field id, in the manifest's types.

        Raises:
            PartitionExpressionFailed: DataFusion refused, or a value does not fit the column.
        """
        return {field.field_id: self._values(rows, field) for field in self.fields}

    def _values(self, rows: pa.RecordBatch | pa.Table, field: PartitionField) -> pa.Array:
        sources = [self.source(rows, source) for source in field.source_ids]
        kinds = [source.type for source in sources]
        sql = field.derivation.expression(kinds)
        return expression(sql, self.types[field.field_id]).apply(sources)

    def source(self, rows: pa.RecordBatch | pa.Table, source_id: int) -> pa.Array:
        """Take a source column of ``fields`` out of rows of ``columns``."""
        column = self.schema.field_by_id(source_id)
        assert column is not None  # noqa: S101 - `fields` leaves the others out
        top = rows.column(column.path[0])
        array = top if len(column.path) == 1 else pc.struct_field(top, list(column.path[1:]))
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def differs(left: pa.Array, right: pa.Array) -> pa.Array:
    """Tell where two arrays of partition values differ: NULL equals NULL, NaN equals NaN.

    Example:
        >>> differs(pa.array([1, None, 3]), pa.array([1, None, None])).to_pylist()
        [False, False, True]
    """
    unequal = pc.fill_null(pc.not_equal(left, right), fill_value=False)
    if pa.types.is_floating(left.type):
        both = pc.and_(pc.is_nan(left), pc.is_nan(right))
        unequal = pc.and_not(unequal, pc.fill_null(both, fill_value=False))
    return pc.or_(unequal, pc.xor(pc.is_null(left), pc.is_null(right)))


def is_same_value(left: pa.Scalar, right: pa.Scalar) -> bool:
    """Whether two partition values of one type are one value; as ``differs``.

    Example:
        >>> is_same_value(pa.scalar(None, pa.int32()), pa.scalar(None, pa.int32()))
        True
    """
    data_type = right.type
    both = (pa.array([value], data_type) for value in (left, right))
    return not differs(*both)[0].as_py()
