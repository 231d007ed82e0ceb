"""The type of a request's handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennon.worker.wire.framing import FrameSocket

__all__ = ["Handler"]

Handler = Callable[[Mapping[str, object], "FrameSocket"], None]
"""Answers one request: sends the reply's frames itself, raises to have an ``X`` frame sent."""
