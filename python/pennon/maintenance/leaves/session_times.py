"""Reads the times of a condition in the time zone of a session, as the WHERE of a query is read.

A text that is compared with a column of type TIMESTAMP is a time of the session where it states no
zone. One that is compared with TIMESTAMP_NTZ stands as it is: the column is taken for a time of
the session as well, which changes nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
from sqlglot import exp

from pennon.errors import PredicateNotEvaluable
from pennon.maintenance.leaves.session_days import ranges_of_days
from pennon.predicate.dialect import DataFusion
from pennon.predicate.predicate_text import shortened_predicate
from pennon.predicate.semantics import is_utc_zone
from pennon.predicate.spark_dialect import SparkSql

if TYPE_CHECKING:
    from pennon.spec.schema import NamespaceSchema

__all__ = ["in_session_zone"]

_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
# What Spark takes for a time, without a zone behind it.
_TIME: Final = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?)?)?\s*"
)
_COMPARISONS: Final = (
    exp.EQ,
    exp.NEQ,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Between,
    exp.In,
)
_TYPES_OF_TIMES: Final = ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATE")
_FIRST_MOMENT: Final = (1, 1, 1, 0, 0, 0)


def in_session_zone(
    condition: exp.Expression, schema: NamespaceSchema, time_zone: str, location: str
) -> exp.Expression:
    """Give a condition whose times are in UTC.

    Args:
        condition: As it was parsed, its times as the session means them.
        schema: The table's.
        time_zone: The session's, as Spark names it: ``Europe/Paris``, ``+02:00``.
        location: The table, for the error.

    Raises:
        PredicateNotEvaluable: The zone is not known.

    Example:
        >>> from pennon.predicate.parse import parse_expression
        >>> from pennon.spec.schema import NamespaceSchema
        >>> times = pa.schema([("t", pa.timestamp("us", "UTC"))])
        >>> schema = NamespaceSchema.with_fresh_ids(times)
        >>> tree = parse_expression("t < TIMESTAMP '2026-01-01'")
        >>> in_session_zone(tree, schema, "+02:00", "t").find(exp.Literal).name
        '2025-12-31 22:00:00'
    """
    if is_utc_zone(time_zone):
        return condition
    zone = _zone(time_zone)

    def has_zoned_times(column: exp.Column) -> bool:
        return _zoned_column(column, schema) is True

    read = ranges_of_days(condition.copy(), has_zoned_times)
    for comparison in list(read.find_all(*_COMPARISONS)):
        is_zoned = _is_zoned(comparison, schema)
        if is_zoned is None:
            continue
        for time in [part for part in comparison.iter_expressions() if _stated(part)]:
            if zone is None:
                raise PredicateNotEvaluable(
                    predicate=shortened_predicate(condition.sql(dialect=DataFusion)),
                    namespace=location,
                    reason=f"the session's time zone {time_zone} is not known",
                )
            if _TIME.fullmatch(_stated(time)) is not None:
                text = _in_utc(_stated(time), zone) if is_zoned else _stated(time)
                type_ = "TIMESTAMP" if is_zoned else "TIMESTAMP_NTZ"
                time.replace(exp.cast(exp.Literal.string(text), type_, dialect=SparkSql))
    return read


def _is_zoned(comparison: exp.Expr, schema: NamespaceSchema) -> bool | None:
    """Whether the times that a column is compared with are of a zone; None where it has no time."""
    for column in comparison.iter_expressions():
        is_zoned = _zoned_column(column, schema) if isinstance(column, exp.Column) else None
        if is_zoned is not None:
            return is_zoned
    return None


def _zoned_column(column: exp.Column, schema: NamespaceSchema) -> bool | None:
    field = schema.field_by_path([part.name for part in column.parts])
    if field is not None and pa.types.is_timestamp(field.field.type):
        return field.field.type.tz is not None
    return None


def _stated(part: exp.Expr) -> str:
    """Give the text of a literal time, bare or of a type; empty for all else."""
    if isinstance(part, exp.Cast) and part.is_type(*_TYPES_OF_TIMES):
        part = part.this
    return part.name if isinstance(part, exp.Literal) and part.is_string else ""


def _in_utc(text: str, zone: tzinfo) -> str:
    matched = _TIME.fullmatch(text)
    if matched is None:
        return text
    year, month, day, hour, minute, second = (
        int(part or least) for part, least in zip(matched.groups(), _FIRST_MOMENT, strict=False)
    )
    micros = int((matched[7] or "0").ljust(6, "0"))
    try:
        local = datetime(year, month, day, hour, minute, second, micros, zone)
        return local.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f").removesuffix(".000000")
    except (ValueError, OverflowError):  # it is no time, which is said where it is read
        return text


def _zone(name: str) -> tzinfo | None:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        length = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(length if sign == "+" else -length)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None
