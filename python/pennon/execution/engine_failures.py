"""What DataFusion raises → the errors that a user meets."""

from __future__ import annotations

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
        return FragmentOverflow(why=why)
    return FragmentFailed(why=why)
