"""The settings of a session that change what an expression means."""

from __future__ import annotations

from dataclasses import dataclass


class Declined(Exception):
    """DataFusion is not known to compute this as Spark does: Spark computes it itself.

    Args:
        why: What is not known.
    """

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Semantics:
    """What a session means by its expressions.

    Args:
        ansi: Whether an overflow is an error; otherwise it wraps or is NULL.
    """

    ansi: bool = True
