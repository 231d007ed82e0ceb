"""What the process works on, and whether anybody still waits for it.

A query looks for its cancellation between two batches. An aggregate over a join that multiplies
rows may compute for hours before its first one, and no call reaches into DataFusion: only the end
of the process stops it. Its JVM starts another one for the next request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pennon.worker.wire.messages import RunFragment

if TYPE_CHECKING:
    from pennon.worker.wire.framing import FrameSocket

# A query that gives batches stops by itself in this time.
_GRACE_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.25


class RunningRequests:
    """The requests that are being answered, by their connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[FrameSocket, object] = {}

    @contextmanager
    def running(self, frames: FrameSocket, operation: object) -> Iterator[None]:
        """Count a request while it is answered."""
        with self._lock:
            self._operations[frames] = operation
        try:
            yield
        finally:
            with self._lock:
                del self._operations[frames]

    def wait_until_abandoned(self) -> None:
        """Wait until there is nothing but fragments of which the other side is long gone."""
        since: float | None = None
        while since is None or time.monotonic() - since < _GRACE_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            if not self._is_all_abandoned():
                since = None
            elif since is None:
                since = time.monotonic()

    def _is_all_abandoned(self) -> bool:
        with self._lock:
            return bool(self._operations) and all(
                operation == RunFragment.op and not frames.is_open()
                for frames, operation in self._operations.items()
            )
