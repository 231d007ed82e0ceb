"""Partition values as text: from the caller, or from ``column=value`` parts of a path.

A name is a partition field's id, or the one source column of a field; then the field's value is
derived from the column's. ``__HIVE_DEFAULT_PARTITION__`` is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transforms.expression import Expression

__all__ = ["NULL_TEXT", "path_values", "value_of_text", "values_of_spec"]

NULL_TEXT: Final = "__HIVE_DEFAULT_PARTITION__"


def path_values(path: str) -> dict[str, str]:
    """Read the ``column=value`` parts of a path.

    Example:
        >>> path_values("/lake/region=eu%2Fwest/day=2025-01-01/part.lance")
        {'region': 'eu/west', 'day': '2025-01-01'}
    """
    pairs = (part.partition("=") for part in PurePosixPath(path).parts)
    return {name: unquote(text) for name, is_pair, text in pairs if is_pair and name}


def value_of_text(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """Read a value of a type; None where the text is none.

    Example:
        >>> value_of_text("2025-12-10", pa.date32())
        <pyarrow.Date32Scalar: datetime.date(2025, 12, 10)>
        >>> value_of_text("x", pa.int32()) is None
        True
    """
    if text == NULL_TEXT:
        return pa.scalar(None, kind)
    try:
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return pa.scalar(bytes.fromhex(text), kind)
        if pa.types.is_decimal(kind):
            return pa.scalar(text).cast(pa.decimal128(38, kind.scale)).cast(kind)
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            zoned = text if text.endswith("Z") or "+" in text else text + "Z"
            return pa.scalar(zoned).cast(kind)
        return pa.scalar(text).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return None


def values_of_spec(
    texts: Mapping[str, str],
    spec: PartitionSpec,
    schema: NamespaceSchema,
    types: Mapping[str, pa.DataType],
) -> dict[str, pa.Scalar]:
    """Turn texts into partition values, as far as they tell them.

    Args:
        texts: By field id or by source column.
        spec: The spec.
        schema: The namespace schema.
        types: The types of the manifest's columns by field id.

    Returns:
        The values by field id; fields that are not told, or not understood, are left out.
    """
    found: dict[str, pa.Scalar] = {}
    for each in spec.fields:
        kind = types[each.field_id]
        value = None
        if each.field_id in texts:
            value = value_of_text(texts[each.field_id], kind)
        if value is None:
            value = _derived(texts, each, schema, kind)
        if value is not None:
            found[each.field_id] = value
    return found


def _derived(
    texts: Mapping[str, str], each: PartitionField, schema: NamespaceSchema, kind: pa.DataType
) -> pa.Scalar | None:
    sources = [schema.field_by_id(number) for number in each.source_ids]
    arrays = []
    for source in sources:
        text = None if source is None else texts.get(str(source))
        if source is None or text is None:
            return None
        value = value_of_text(text, source.field.type)
        if value is None:
            return None
        arrays.append(pa.array([value], source.field.type))
    sql = each.derivation.expression([array.type for array in arrays])
    return Expression(sql, kind).apply(arrays)[0]
