"""Values as texts: in names that other writers chose, in commands, and for display.

``__HIVE_DEFAULT_PARTITION__`` is NULL.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

__all__ = [
    "NULL_TEXT",
    "path_values",
    "python_rows",
    "python_value",
    "python_values",
    "text_of_value",
    "value_of_text",
]

NULL_TEXT: Final = "__HIVE_DEFAULT_PARTITION__"


def path_values(path: str) -> dict[str, str]:
    """Read the ``column=value`` parts of a path.

    Example:
        >>> path_values("/lake/region=eu%2Fwest/day=2025-01-01/part.lance")
        {'region': 'eu/west', 'day': '2025-01-01'}
    """
    pairs = (part.partition("=") for part in PurePosixPath(path).parts)
    return {name: unquote(text) for name, is_pair, text in pairs if is_pair and name}


def value_of_text(text: str, data_type: pa.DataType) -> pa.Scalar | None:
    """Read a value of a type; None where the text is none.

    Example:
        >>> value_of_text("2025-12-10", pa.date32())
        <pyarrow.Date32Scalar: datetime.date(2025, 12, 10)>
        >>> value_of_text("x", pa.int32()) is None
        True
    """
    if text == NULL_TEXT:
        return pa.scalar(None, data_type)
    try:
        if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
            return pa.scalar(bytes.fromhex(text), data_type)
        if pa.types.is_decimal(data_type):
            return pa.scalar(text).cast(pa.decimal128(38, data_type.scale)).cast(data_type)
        if pa.types.is_timestamp(data_type) and data_type.tz is not None:
            zoned = text if text.endswith("Z") or "+" in text else text + "Z"
            return pa.scalar(zoned).cast(data_type)
        return pa.scalar(text).cast(data_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return None


def text_of_value(value: pa.Scalar) -> str:
    """Write a partition value as text: dates ISO, timestamps ISO with Z where they are zoned.

    Example:
        >>> text_of_value(pa.scalar(2025, pa.int32()))
        '2025'
    """
    data_type = value.type
    if pa.types.is_timestamp(data_type):
        plain = value.cast(pa.timestamp(data_type.unit, "UTC" if data_type.tz else None))
        text = str(plain.cast(pa.timestamp(data_type.unit)).cast(pa.utf8()).as_py())
        return text.replace(" ", "T", 1) + ("Z" if data_type.tz else "")
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return str(value.as_py().hex())
    return str(value.cast(pa.utf8()).as_py())


def python_value(value: pa.Scalar) -> object:
    """Give a value as Python's; dates and times of years that Python does not have as texts.

    Example:
        >>> python_value(pa.scalar(4_000_000, pa.int32()).cast(pa.date32()))
        '12921-08-18'
    """
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        data_type = value.type
        if pa.types.is_dictionary(data_type):
            return python_value(value.cast(data_type.value_type))
        if pa.types.is_struct(data_type):
            return {child.name: python_value(value[at]) for at, child in enumerate(data_type)}
        if pa.types.is_map(data_type):
            columns = (python_values(value.values.field(at)) for at in range(2))
            return list(zip(*columns, strict=True))
        if hasattr(data_type, "value_field"):
            return python_values(value.values)
        return value.cast(pa.utf8()).as_py()


def python_values(values: pa.Array | pa.ChunkedArray) -> list[object]:
    """Give values as ``python_value`` does.

    Example:
        >>> python_values(pa.array([0, 4_000_000], pa.int32()).cast(pa.date32()))
        [datetime.date(1970, 1, 1), '12921-08-18']
    """
    try:
        return list(values.to_pylist())
    except (OverflowError, ValueError):
        return [python_value(value) for value in values]


def python_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, object]]:
    """Give rows as dicts of what ``python_value`` gives."""
    rows = zip(*map(python_values, table.columns), strict=True)
    return [dict(zip(table.schema.names, row, strict=True)) for row in rows]
