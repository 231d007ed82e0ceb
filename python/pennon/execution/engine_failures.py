"""Translates DataFusion's errors into Pennon's."""

from __future__ import annotations

import re
from typing import Final, TypeAlias, get_args

from pennon.errors import (
    FragmentCalendar,
    FragmentDivision,
    FragmentFailed,
    FragmentMemory,
    FragmentOverflow,
    FragmentPart,
    FragmentRows,
    FragmentText,
    FragmentTime,
)
from pennon.execution.memory import pool_bytes
from pennon.predicate.expressions.parsed_texts import NOT_PARSED, NOT_READ
from pennon.predicate.expressions.text_functions import NO_PART
from pennon.transforms.evaluation import DataFusionErrors

_EXHAUSTED: Final = ("resources exhausted", "not enough memory", "failed to allocate")
_OVERFLOWS: Final = (
    "too large to store in",
    "too small to store in",
    "is out of range",
    "overflow",
    "can't cast value",
    "converted value exceeds the representable",
)
TOO_MANY_ROWS: Final = "rows of a subquery for one value: "
"""What stands before their number where a query finds too many."""
_NUMBER_OF_ROWS: Final = re.compile(re.escape(TOO_MANY_ROWS) + r"(?P<rows>\d+)")
# What Arrow says of a day that its calendar has not.
_BEYOND: Final = ("failed to convert", "date arithmetic overflow", "timestamp out of range")
_DIVISIONS: Final = ("divide by zero", "division by zero")
_LONGEST_REASON: Final = 300
_CAUSE: Final = "\ncaused by\n"
# Lance says beside what went wrong where in its own sources.
_SOURCE_LINE: Final = re.compile(r",? \S+\.rs:\d+(:\d+)?")


# How Arrow and DataFusion name the value that does not fit, and the type.
_VALUES: Final = (
    re.compile(r"value of (?P<value>-?[\d.]+) is out of range (?P<type>\w+)"),
    re.compile(r"Can't cast value (?P<value>-?[\d.]+) to type (?P<type>\w+)"),
    re.compile(r"(?P<value>-?[\d.]+) is too (?:large|small) to store in a (?P<type>Decimal)"),
)
_TEXT: Final = re.compile(
    r"Cannot cast (?:string|value) '(?P<value>.*)' to value of (?P<type>\w+)(?:\([^)]*\))? type",
    re.DOTALL,
)
_PART: Final = re.compile(rf"{NO_PART}(?P<index>\d+) of (?P<count>\d+)")
_SPARK_TYPES: Final = {
    "Boolean": "BOOLEAN",
    "Int8": "TINYINT",
    "Int16": "SMALLINT",
    "Int32": "INT",
    "Int64": "BIGINT",
    "Float64": "DOUBLE",
    "Decimal": "DECIMAL",
    "Date32": "DATE",
    "Timestamp": "TIMESTAMP",
}


_OfValues: TypeAlias = (
    FragmentCalendar
    | FragmentDivision
    | FragmentOverflow
    | FragmentPart
    | FragmentText
    | FragmentTime
)
VALUE_FAILURES: Final = get_args(_OfValues)
"""The errors of values: of those that Spark cannot compute either, and of years beyond."""


def engine_failures() -> DataFusionErrors:
    """Translate what DataFusion raises inside."""
    return DataFusionErrors(_translated)


def _translated(
    error: BaseException,
) -> FragmentMemory | FragmentRows | FragmentFailed | _OfValues:
    counted = _NUMBER_OF_ROWS.search(str(error))
    if counted is not None:
        return FragmentRows(rows=counted["rows"])
    lowered = str(error).lower()
    if any(words in lowered for words in _EXHAUSTED):
        return FragmentMemory(pool=pool_bytes(), why=_reason(error))
    return failure_of_values(error) or FragmentFailed(why=_reason(error))


def failure_of_values(error: BaseException) -> _OfValues | None:
    """Give the error of a value that cannot be computed; None where another thing went wrong.

    Args:
        error: What DataFusion raised, or Lance, which computes filters by it.
    """
    text = _TEXT.search(str(error))
    part = None if text is None else _PART.fullmatch(text["value"])
    if part is not None:
        return FragmentPart(**part.groupdict())
    if text is not None and text["value"].startswith(NOT_PARSED):
        return FragmentTime(value=repr(text["value"].removeprefix(NOT_PARSED)))
    if text is not None and text["type"] in _SPARK_TYPES:
        value = text["value"].removeprefix(NOT_READ)
        return FragmentText(value=repr(value), type=_SPARK_TYPES[text["type"]])
    lowered = str(error).lower()
    if any(words in lowered for words in _BEYOND):
        return FragmentCalendar(why=_reason(error))
    if any(words in lowered for words in _DIVISIONS):
        return FragmentDivision(why=_reason(error))
    if any(words in lowered for words in _OVERFLOWS):
        return FragmentOverflow(why=_reason(error), **_value(str(error)))
    return None


def _reason(error: BaseException) -> str:
    """Give the first line of what went wrong, without what it stopped."""
    text = _SOURCE_LINE.sub("", str(error).rpartition(_CAUSE)[2].strip())
    return text.splitlines()[0][:_LONGEST_REASON].rstrip(". ") if text else "?"


def _value(text: str) -> dict[str, str]:
    """Find the value that does not fit, and Spark's name of the type; empty texts where unknown."""
    for value in _VALUES:
        match = value.search(text)
        if match is not None:
            return {"value": match["value"], "type": _SPARK_TYPES.get(match["type"], "")}
    return {"value": "", "type": ""}
