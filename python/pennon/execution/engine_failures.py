"""What DataFusion raises → the errors that a user meets."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.errors import FragmentFailed, FragmentMemory, FragmentOverflow
from pennon.execution.memory import pool_bytes

if TYPE_CHECKING:
    from types import TracebackType

_PANIC: Final = "PanicException"
_EXHAUSTED: Final = ("resources exhausted", "not enough memory", "failed to allocate")
_OVERFLOWS: Final = (
    "too large to store in",
    "too small to store in",
    "is out of range",
    "overflow",
    "can't cast value",
)
_LONGEST_REASON: Final = 300


@dataclass(frozen=True, slots=True)
class EngineFailures(AbstractContextManager[None]):
    """Translates what DataFusion raises inside: ValueError when it plans, else a bare Exception."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or kind is None:
            return
        if kind in (Exception, ValueError, RuntimeError) or kind.__name__ == _PANIC:
            raise _translated(error) from error


def _translated(error: BaseException) -> FragmentMemory | FragmentOverflow | FragmentFailed:
    text = str(error)
    lowered = text.lower()
    why = text.strip().splitlines()[0][:_LONGEST_REASON].rstrip(". ") if text.strip() else "?"
    if any(words in lowered for words in _EXHAUSTED):
        return FragmentMemory(pool=pool_bytes(), why=why)
    if any(words in lowered for words in _OVERFLOWS):
        return FragmentOverflow(why=why)
    return FragmentFailed(why=why)
