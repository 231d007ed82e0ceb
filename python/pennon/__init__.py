"""Lance Partitioned Namespaces as tables: open one here, or in Spark through ``pennon.spark``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pennon import errors
from pennon.catalog.upstream import namespace_alias

if TYPE_CHECKING:
    from pennon.namespace import PartitionedNamespace, connect
    from pennon.namespace import create_namespace as create
    from pennon.namespace import open_namespace as open  # noqa: A004
    from pennon.session import configure, spark

__version__ = "0.1.0"
__all__ = [
    "PartitionedNamespace",
    "__version__",
    "configure",
    "connect",
    "create",
    "errors",
    "open",
    "spark",
]

# lance_namespace.connect("pennon", …) works from here on.
namespace_alias.register()

# Imported on first use: opening a namespace needs no pyspark, and the worker neither.
_PLACES = {
    "PartitionedNamespace": ("pennon.namespace", "PartitionedNamespace"),
    "connect": ("pennon.namespace", "connect"),
    "create": ("pennon.namespace", "create_namespace"),
    "open": ("pennon.namespace", "open_namespace"),
    "spark": ("pennon.session", "spark"),
    "configure": ("pennon.session", "configure"),
}


if not TYPE_CHECKING:  # a checker that saw it would take any name for one of the package

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            message = f"module 'pennon' has no attribute {name!r}"
            raise AttributeError(message)
        module, attribute = _PLACES[name]
        return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
