"""The socket server: one thread per connection, one request at a time on each.

A connection that its other side closes cancels its request; a query that cannot be stopped retires
the process (``running_requests.py``). A request that fails is answered with an ``X`` frame, in
mid-stream too, and the connection goes on; a refused stream of rows and bytes that are no message
end it.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from pennon.errors import MalformedMessage
from pennon.worker.messages.write_messages import Write, WriteDeletes
from pennon.worker.requests.dispatch import handler_of
from pennon.worker.running_requests import RunningRequests
from pennon.worker.wire.failures import describe
from pennon.worker.wire.framing import ConnectionClosed, FrameKind, FrameSocket

if TYPE_CHECKING:
    from pathlib import Path

_LOG = logging.getLogger(__name__)
_BACKLOG = 256


class Server:
    """Serves requests on a Unix socket.

    Args:
        path: Where the socket is made; its folder belongs to the user alone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(_BACKLOG)
        self._requests = RunningRequests()

    def serve(self) -> None:
        """Accept connections until :meth:`close`."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def wait_until_retired(self, retire: Callable[[], None]) -> None:
        """Wait until the process works on what nobody waits for, and on nothing else.

        Args:
            retire: Tells the JVM, as soon as there is such work, to send no more requests.
        """
        self._requests.wait_until_retired(retire)

    def close(self) -> None:
        """Stop accepting and remove the socket."""
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _serve(self, connection: socket.socket) -> None:
        frames = FrameSocket(connection)
        try:
            while self._answer(frames):
                pass
        except ConnectionClosed:
            _LOG.debug("a connection was closed by the other side")
        finally:
            frames.close()

    def _answer(self, frames: FrameSocket) -> bool:
        """Answer one request; False when the connection cannot go on."""
        try:
            request = frames.receive_json()
        except MalformedMessage as error:
            frames.send_json(describe(error), FrameKind.ERROR)
            return False
        operation = request.get("op")
        try:
            with self._requests.running(frames, operation):
                handler_of(operation)(request, frames)
        except ConnectionClosed:
            raise
        except BaseException as error:  # noqa: BLE001 - the edge: a panic in Rust is reported as well
            frames.send_json(describe(error), FrameKind.ERROR)
            # The rest of a stream that was refused stands in the way of the next message.
            return operation not in (Write.op, WriteDeletes.op)
        return True
