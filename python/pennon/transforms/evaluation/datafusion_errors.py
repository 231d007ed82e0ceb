"""Translates DataFusion's errors in partition expressions into Pennon's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.errors import PennonError

if TYPE_CHECKING:
    from types import TracebackType

_RAISED: Final = (Exception, ValueError, RuntimeError)
# The class of a panic is one that no module exports.
_PANIC: Final = "PanicException"


@dataclass(frozen=True, slots=True)
class DataFusionErrors(AbstractContextManager[None]):
    """Translates what DataFusion raises inside: ValueError when it plans, else a bare Exception.

    Args:
        translated: Gives the error of the caller, with what was raised as its reason.
        others: More classes that count as raised by DataFusion, not their subclasses.
    """

    translated: Callable[[BaseException], PennonError]
    others: tuple[type[BaseException], ...] = ()

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
        if kind in _RAISED or kind in self.others or kind.__name__ == _PANIC:
            raise self.translated(error) from error
