"""Removes socket folders whose JVM and worker were both killed."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from pathlib import Path
from typing import Final

__all__ = ["remove_abandoned_sockets"]

_FOLDER: Final = re.compile(r"pennon-\d+")
# A JVM makes the folder before its worker listens, and a worker that ends may be slow.
_SECONDS: Final = 3600


def remove_abandoned_sockets(own: Path) -> list[Path]:
    """Remove the folders beside a worker's own whose sockets nobody listens on.

    Args:
        own: The worker's socket, in a folder of its own.

    Returns:
        What was removed: folders of this user, older than an hour, with nothing in them but a
        socket that refuses connections.

    Example:
        >>> remove_abandoned_sockets(Path("/tmp/pennon-17/worker.sock"))  # doctest: +SKIP
        [PosixPath('/tmp/pennon-12')]
    """
    removed = []
    with contextlib.suppress(OSError):
        for folder in own.parent.parent.iterdir():
            if folder != own.parent and _FOLDER.fullmatch(folder.name) and _is_abandoned(folder):
                (folder / own.name).unlink(missing_ok=True)
                folder.rmdir()
                removed.append(folder)
    return removed


def _is_abandoned(folder: Path) -> bool:
    try:
        status = folder.lstat()
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _SECONDS:
            return False
        inside = list(folder.iterdir())
        return all(path.is_socket() for path in inside) and not any(map(_is_heard, inside))
    except OSError:  # it goes meanwhile, or is no folder
        return False


def _is_heard(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(1)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True
