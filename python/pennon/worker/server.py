"""The socket server: one thread per connection, one request at a time on each.

A connection that its other side closes cancels its request; a query that cannot be stopped retires
the process. A request that fails is answered with an ``X`` frame, in mid-stream too, and the
connection goes on; a refused stream of rows and bytes that are no message end it.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from pennon.errors import MalformedMessage
from pennon.worker.freed_memory import give_back
from pennon.worker.messages.messages import Write, WriteDeletes
from pennon.worker.messages.scan_messages import RunFragment
from pennon.worker.requests.dispatch import handler_of
from pennon.worker.wire.framing import ConnectionClosed, FrameKind, FrameSocket, describe

if TYPE_CHECKING:
    from pathlib import Path

# The requests that are running, and whether a client still waits for each.
#
# A query looks for its cancellation between two batches. An aggregate over a join that multiplies
# rows may compute for hours before its first one, and no call reaches into DataFusion: only the end
# of the process stops it. So the process retires: it informs its JVM, which starts another one for
# what comes, and it ends with the last of its other requests. Until then the thread of what nobody
# waits for has the least priority, so that it takes little of the processors from the others.
#
# A process without requests gives back the memory that it kept for the next ones.

# A query that gives batches stops by itself in this time.
_GRACE_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 0.1
_IDLE_SECONDS: Final = 5.0
# What is still computed for nobody gets what time is left over.
_LEAST_PRIORITY: Final = 19
# Requests that take so long are logged.
_SLOW_SECONDS: Final = 5.0
_LOG: Final = logging.getLogger(__name__)


class RunningRequests:
    """The requests that are being answered, by their connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[FrameSocket, tuple[object, int]] = {}
        self._ended: float | None = None

    @contextmanager
    def running(self, frames: FrameSocket, operation: object) -> Iterator[None]:
        """Count a request while it is answered."""
        begun = time.monotonic()
        with self._lock:
            self._operations[frames] = (operation, threading.get_native_id())
        try:
            yield
        finally:
            with self._lock:
                del self._operations[frames]
                self._ended = ended = time.monotonic()
            seconds = ended - begun
            if seconds >= _SLOW_SECONDS:
                _LOG.info("%s took %.1f s", operation, seconds)

    def wait_until_retired(self, retire: Callable[[], None]) -> None:
        """Wait until a fragment is long abandoned, retire, and wait for the last other request.

        Args:
            retire: Tells the JVM that no request is taken any more.
        """
        since: dict[FrameSocket, float] = {}
        is_retired = False
        while True:
            time.sleep(_PAUSE_SECONDS)
            if self._is_newly_idle():
                give_back()
            abandoned, others = self._abandoned()
            now = time.monotonic()
            since = {frames: since.get(frames, now) for frames in abandoned}
            if not is_retired and any(now - first >= _GRACE_SECONDS for first in since.values()):
                retire()
                is_retired = True
            if is_retired:
                self._put_back(abandoned)
            if is_retired and not others:
                return

    def _is_newly_idle(self) -> bool:
        """Whether the last request ended a while ago; once behind each."""
        with self._lock:
            if self._operations or self._ended is None:
                return False
            is_idle = time.monotonic() - self._ended >= _IDLE_SECONDS
            self._ended = None if is_idle else self._ended
            return is_idle

    def _abandoned(self) -> tuple[list[FrameSocket], int]:
        """Find the fragments whose other side is gone, and how many other requests there are."""
        with self._lock:
            operations = list(self._operations.items())
        abandoned = [
            frames
            for frames, (operation, _) in operations
            if operation == RunFragment.op and not frames.is_open()
        ]
        return abandoned, len(operations) - len(abandoned)

    def _put_back(self, abandoned: Iterable[FrameSocket]) -> None:
        """Lower the priority of threads; that of threads which they have started stays."""
        with self._lock:
            threads = [
                self._operations[socket][1] for socket in abandoned if socket in self._operations
            ]
            for thread in threads:
                with suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, thread, _LEAST_PRIORITY)


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
