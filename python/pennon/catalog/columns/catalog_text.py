"""Bounds of columns as Spark writes them into its own catalog (``CatalogColumnStat``)."""

from __future__ import annotations

import math
from typing import Final

import pyarrow as pa

__all__ = ["catalog_text", "is_estimated_type"]

_YEAR_DIGITS: Final = 4
_BOUNDED: Final = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
)


def catalog_text(value: pa.Scalar) -> str | None:
    """Write a bound; None for NULL, and for what Spark's estimates have no bounds of.

    These are texts, and numbers and times that Spark would not read: infinities, NaN, and years
    that have not four digits. Timestamps are in UTC.

    Example:
        >>> import datetime
        >>> catalog_text(pa.scalar(datetime.date(2025, 12, 10)))
        '2025-12-10'
        >>> catalog_text(pa.scalar("a")) is None
        True
    """
    data_type = value.type
    if not value.is_valid or not any(is_bounded(data_type) for is_bounded in _BOUNDED):
        return None
    if pa.types.is_floating(data_type):
        number = float(value.as_py())
        return repr(number) if math.isfinite(number) else None
    if pa.types.is_decimal(data_type):
        return format(value.as_py(), "f")
    if pa.types.is_integer(data_type):
        return str(value.as_py())
    zoneless = value.cast(pa.timestamp("us")) if pa.types.is_timestamp(data_type) else value
    text = str(zoneless.cast(pa.utf8()).as_py())
    return text if text.index("-") == _YEAR_DIGITS else None


def is_estimated_type(data_type: pa.DataType) -> bool:
    """Whether Spark's estimates know a type: one of a filter on TIMESTAMP_NTZ ends the query.

    Example:
        >>> is_estimated_type(pa.timestamp("us", "UTC")), is_estimated_type(pa.timestamp("us"))
        (True, False)
    """
    return not pa.types.is_timestamp(data_type) or data_type.tz is not None
