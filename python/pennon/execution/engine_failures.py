"""What DataFusion raises → the errors that a user meets."""

from __future__ import annotations

import re
from typing import Final

from pennon.errors import FragmentDivision, FragmentFailed, FragmentMemory, FragmentOverflow
from pennon.execution.memory import pool_bytes
from pennon.transforms.datafusion_errors import DataFusionErrors

_EXHAUSTED: Final = ("resources exhausted", "not enough memory", "failed to allocate")
_OVERFLOWS: Final = (
    "too large to store in",
    "too small to store in",
    "is out of range",
    "overflow",
    "can't cast value",
)
_DIVISIONS: Final = ("divide by zero", "division by zero")
_LONGEST_REASON: Final = 300


# How Arrow and DataFusion tell the value that does not fit, and the type.
_VALUES: Final = (
    re.compile(r"value of (?P<value>-?[\d.]+) is out of range (?P<type>\w+)"),
    re.compile(r"Can't cast value (?P<value>-?[\d.]+) to type (?P<type>\w+)"),
    re.compile(r"(?P<value>-?[\d.]+) is too (?:large|small) to store in a (?P<type>Decimal)"),
)
_SPARK_TYPES: Final = {
    "Int8": "TINYINT",
    "Int16": "SMALLINT",
    "Int32": "INT",
    "Int64": "BIGINT",
    "Decimal": "DECIMAL",
}


def engine_failures() -> DataFusionErrors:
    """Translate what DataFusion raises inside."""
    return DataFusionErrors(_translated)


def _translated(
    error: BaseException,
) -> FragmentDivision | FragmentMemory | FragmentOverflow | FragmentFailed:
    text = str(error)
    lowered = text.lower()
    why = text.strip().splitlines()[0][:_LONGEST_REASON].rstrip(". ") if text.strip() else "?"
    if any(words in lowered for words in _EXHAUSTED):
        return FragmentMemory(pool=pool_bytes(), why=why)
    if any(words in lowered for words in _DIVISIONS):
        return FragmentDivision(why=why)
    if any(words in lowered for words in _OVERFLOWS):
        return FragmentOverflow(why=why, **_value(text))
    return FragmentFailed(why=why)


def _value(text: str) -> dict[str, str]:
    """Find the value that does not fit, and Spark's name of the type; empty texts where unknown."""
    for each in _VALUES:
        found = each.search(text)
        if found is not None:
            return {"value": found["value"], "type": _SPARK_TYPES.get(found["type"], "")}
    return {"value": "", "type": ""}
