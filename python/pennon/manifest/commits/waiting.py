"""Randomised back-off after a lost race."""

from __future__ import annotations

import random
import time
from typing import Final

__all__ = ["wait_for_others"]

_FIRST_SECONDS: Final = 0.01
_LONGEST_SECONDS: Final = 0.5


def wait_for_others(attempt: int) -> None:
    """Wait a random while, longer after each failed attempt.

    Args:
        attempt: How many have failed before this one.
    """
    longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2**attempt)
    time.sleep(random.uniform(0, longest))  # noqa: S311 - spreads writers, protects nothing
