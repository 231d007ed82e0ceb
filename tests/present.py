"""Values that a test knows to be there, where a type leaves it open."""

from __future__ import annotations

from typing import TypeVar

_Value = TypeVar("_Value")


def present(value: _Value | None) -> _Value:
    """The value, which is not None; else the test fails here and not behind."""
    assert value is not None
    return value
