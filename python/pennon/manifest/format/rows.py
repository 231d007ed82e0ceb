"""The rows of ``__manifest``: namespaces, leaf tables and their versions, as an Arrow table.

| object_type | object_id | metadata | read_version | partition columns |
|---|---|---|---|---|
| ``namespace`` | ``v<N>`` and below | ``{}`` | NULL | the values of its levels |
| ``table`` | ``…$dataset`` | statistics | the Lance version to read | all values |
| ``table_version`` | ``…$dataset$<n>`` | ``{}`` | a Lance version | NULL |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pennon.manifest.format.columns import PARTITION_PREFIX

__all__ = ["NAMESPACE", "TABLE", "TABLE_VERSION", "ManifestRow", "table_of_rows"]

NAMESPACE: Final = "namespace"
TABLE: Final = "table"
TABLE_VERSION: Final = "table_version"


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One row to write.

    Args:
        object_id: The primary key.
        object_type: ``namespace``, ``table`` or ``table_version``.
        location: A leaf's directory, relative to the namespace's location.
        metadata: JSON text.
        read_version: A Lance version of the leaf.
        values: Partition values by field id; a field that is left out is NULL.

    Spec: "Manifest Table Schema", Appendix C.
    """

    object_id: str
    object_type: str
    location: str | None = None
    metadata: str = "{}"
    read_version: int | None = None
    values: Mapping[str, pa.Scalar] = field(default_factory=dict, hash=False)


def table_of_rows(rows: Sequence[ManifestRow], schema: pa.Schema) -> pa.Table:
    """Make the Arrow table of rows, with exactly the columns of ``__manifest``.

    Args:
        rows: The rows.
        schema: The schema of ``__manifest``; columns that Pennon does not know get NULL.

    Spec: "Manifest Table Schema".
    """
    columns = [_column(rows, field) for field in schema]
    return pa.table(columns, schema=schema)


def _column(rows: Sequence[ManifestRow], column: pa.Field) -> pa.Array:
    if column.name in ManifestRow.__slots__ and column.name != "values":
        return pa.array([getattr(row, column.name) for row in rows], column.type)
    if column.name.startswith(PARTITION_PREFIX):
        field_id = column.name.removeprefix(PARTITION_PREFIX)
        values = [row.values.get(field_id) for row in rows]
        if any(value is not None and value.is_valid for value in values):
            return _cast(values, column.type)
    return pa.nulls(len(rows), column.type)


def _cast(values: Sequence[pa.Scalar | None], target: pa.DataType) -> pa.Array:
    null = pa.scalar(None, target)
    alike = [null if value is None else _as(value, target) for value in values]
    # as_py would lose nanoseconds and the exact bits of floats.
    return pa.array(alike, target)


def _as(value: pa.Scalar, target: pa.DataType) -> pa.Scalar:
    return value if value.type == target else value.cast(target)
