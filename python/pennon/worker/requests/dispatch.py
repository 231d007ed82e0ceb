"""Maps operations to handlers; executors do not import the driver's half.

The driver's half brings ``lance_namespace`` with its hundreds of generated classes: it is a third
of the whole start.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pennon.errors import UnknownOperation
from pennon.worker.messages.scan_messages import Read, RunFragment
from pennon.worker.messages.write_messages import Write, WriteDeletes
from pennon.worker.requests import data_plane
from pennon.worker.requests.deferred_client import defer_rest_client

if TYPE_CHECKING:
    from pennon.worker.requests.handler import Handler

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
