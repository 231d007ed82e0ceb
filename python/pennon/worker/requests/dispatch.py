"""Maps operations to handlers; executors do not import the driver's half.

The driver's half brings ``lance_namespace`` with its hundreds of generated classes: it is a third
of the whole start.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Final

from pennon.errors import UnknownOperation
from pennon.worker.messages.messages import Write, WriteDeletes
from pennon.worker.messages.scan_messages import Read, RunFragment
from pennon.worker.requests import data_plane

if TYPE_CHECKING:
    from pennon.worker.requests.operations import Handler

# Imports ``lance_namespace`` without the classes that only its REST client needs.
#
# ``lance_namespace`` needs the models of the package ``lance_namespace_urllib3_client``. That
# package's own ``__init__`` imports its API classes too, which check their arguments by pydantic:
# two thirds of the whole import, 0.7 s of CPU in the first query of a session. So its ``__init__``
# is run when somebody asks for a name of it.

_CLIENT: Final = "lance_namespace_urllib3_client"


class _Deferred(ModuleType):
    """A package whose ``__init__`` has not run: its submodules can be imported all the same."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        # From now on its names are found as those of any other module.
        object.__setattr__(self, "__class__", ModuleType)
        spec = self.__spec__
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module(self)
        return getattr(self, name)


def defer_rest_client() -> None:
    """Let ``lance_namespace`` be imported without its REST client; call it before that.

    A worker owns its process. Elsewhere the package is left as it is.

    Example:
        >>> defer_rest_client()
        >>> from lance_namespace_urllib3_client import ApiClient
        >>> ApiClient.__name__
        'ApiClient'
    """
    if _CLIENT in sys.modules:
        return
    spec = find_spec(_CLIENT)
    if spec is None:
        return
    module = module_from_spec(spec)
    module.__class__ = _Deferred
    sys.modules[_CLIENT] = module


_IMPORTING = threading.Lock()
_DATA_PLANE: Mapping[str, Handler] = {
    Read.op: data_plane.read,
    RunFragment.op: data_plane.run_fragment,
    Write.op: data_plane.write,
    WriteDeletes.op: data_plane.write_deletes,
}


def handler_of(operation: object) -> Handler:
    """Find what answers an operation.

    Raises:
        UnknownOperation: Nothing does; the error lists the operations.
    """
    handler = _DATA_PLANE.get(operation) if isinstance(operation, str) else None
    if handler is not None:
        return handler
    handlers = driver_handlers()
    handler = handlers.get(operation) if isinstance(operation, str) else None
    if handler is None:
        operations = ", ".join(sorted([*_DATA_PLANE, *handlers]))
        raise UnknownOperation(operation=repr(operation), known=operations)
    return handler


def driver_handlers() -> Mapping[str, Handler]:
    """Import the driver's half, one thread at a time.

    Threads that import the same modules at once can see them half made: Python breaks the
    deadlock of two of them in that way.
    """
    with _IMPORTING:
        defer_rest_client()
        from pennon.worker.requests.operations import HANDLERS  # noqa: PLC0415 - see above

        return HANDLERS
