"""Partition values as text: from the caller, or from ``column=value`` parts of a path.

A name is a partition field's id, or the one source column of a field; then the field's value is
derived from the column's. ``__HIVE_DEFAULT_PARTITION__`` is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.spec.value_text import value_of_text
from pennon.transforms.registry import expression

__all__ = ["values_of_spec"]


def values_of_spec(
    texts: Mapping[str, str],
    spec: PartitionSpec,
    schema: NamespaceSchema,
    types: Mapping[str, pa.DataType],
) -> dict[str, pa.Scalar]:
    """Turn texts into partition values, as far as they state them.

    Args:
        texts: By field id or by source column.
        spec: The spec.
        schema: The namespace schema.
        types: The types of the manifest's columns by field id.

    Returns:
        The values by field id; fields that are not stated, or not understood, are left out.
    """
    values: dict[str, pa.Scalar] = {}
    for field in spec.fields:
        kind = types[field.field_id]
        value = None
        if field.field_id in texts:
            value = value_of_text(texts[field.field_id], kind)
        if value is None:
            value = _derived(texts, field, schema, kind)
        if value is not None:
            values[field.field_id] = value
    return values


def _derived(
    texts: Mapping[str, str], field: PartitionField, schema: NamespaceSchema, data_type: pa.DataType
) -> pa.Scalar | None:
    sources = [schema.field_by_id(number) for number in field.source_ids]
    arrays = []
    for source in sources:
        text = None if source is None else texts.get(str(source))
        if source is None or text is None:
            return None
        value = value_of_text(text, source.field.type)
        if value is None:
            return None
        arrays.append(pa.array([value], source.field.type))
    sql = field.derivation.expression([array.type for array in arrays])
    return expression(sql, data_type).apply(arrays)[0]
