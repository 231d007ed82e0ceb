"""Registers the name ``pennon`` for ``lance_namespace.connect`` without importing it.

``lance_namespace`` has a table of names and no entry points, and importing it takes most of a
second. So the name is entered at once where it is imported already, else as soon as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Final

__all__ = ["ALIAS", "IMPLEMENTATION", "register"]

ALIAS: Final = "pennon"
IMPLEMENTATION: Final = "pennon.catalog.upstream.lance_namespace.PennonNamespace"
_INTERFACE: Final = "lance_namespace"


def register() -> None:
    """Make ``lance_namespace.connect("pennon", …)`` work, now or when that package is imported.

    Example:
        >>> import lance_namespace
        >>> register()
        >>> lance_namespace.connect("pennon", {"root": "/data/lake"})
        PennonNamespace(root='/data/lake')
    """
    interface = sys.modules.get(_INTERFACE)
    if interface is not None:
        _enter(interface)
    elif not any(isinstance(finder, _OnImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnImport())


def _enter(interface: ModuleType) -> None:
    interface.register_namespace_impl(ALIAS, IMPLEMENTATION)


class _OnImport(MetaPathFinder):
    """Leaves the import of the interface to the others, and has the name entered after it."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the interface's name
        target: ModuleType | None = None,  # noqa: ARG002 - the interface's name
    ) -> ModuleSpec | None:
        if fullname != _INTERFACE:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Entering(spec.loader)
        return spec


class _Entering(Loader):
    """Loads a module as its own loader does, then enters the name into it."""

    def __init__(self, own: Loader) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Nobody who looks at the module later shall meet this class.
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        _enter(module)
