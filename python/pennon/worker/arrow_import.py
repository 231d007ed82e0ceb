"""Imports Arrow's datasets without pandas, which no worker needs.

``pyarrow.dataset`` makes a scalar while it is imported, and for that looks for pandas: where it is
installed, as beside most Sparks, half of a worker's start was the import of pandas.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["import_arrow"]


class _WithoutPandas:
    """Says that pandas is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse pandas, and leave all else to others."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def import_arrow() -> None:
    """Import ``pyarrow.dataset``; what comes later finds pandas where it asks for it."""
    refusing = _WithoutPandas()
    sys.meta_path.insert(0, refusing)
    try:
        import_module("pyarrow.dataset")
    finally:
        sys.meta_path.remove(refusing)
