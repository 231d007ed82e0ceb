"""Errors of the code that gives rows, of which Lance makes the text of an error of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["KeptFailure"]


class KeptFailure:
    """Keeps what fails while rows are made, and raises it in the place of Lance's error.

    Example:
        >>> rows = KeptFailure()
        >>> with rows.raised():
        ...     try:
        ...         with rows:
        ...             raise KeyError("region")
        ...     except KeyError:
        ...         raise OSError("C Data interface error: Key error: 'region'")
        Traceback (most recent call last):
        KeyError: 'region'
    """

    def __init__(self) -> None:
        self._error: BaseException | None = None

    def __enter__(self) -> None:
        self._error = None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not isinstance(error, GeneratorExit):
            self._error = error

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Run what hands the rows to Lance."""
        try:
            yield
        except (OSError, RuntimeError, ValueError):
            if self._error is not None:
                raise self._error from None
            raise
