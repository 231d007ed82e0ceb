"""The folders of the workers' sockets: one is made at a start, abandoned ones are removed.

The path of a Unix socket has at most 107 bytes. The temporary folder of a container on YARN is
longer than that, so the system's own folders for temporary files are next in turn.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pennon.errors import WorkerNotStarted

__all__ = ["remove_abandoned_sockets", "socket_in_new_folder"]

_PREFIX: Final = "pennon-worker-"
_FOLDER: Final = re.compile(f"{_PREFIX}[0-9a-z_]+")
_SOCKET: Final = "worker.sock"
_MAX_PATH_BYTES: Final = 107
# A folder is made before its worker listens, and a worker that ends may be slow.
_SECONDS: Final = 3600


def socket_in_new_folder(temporary: Path) -> Path:
    """Make a folder that nobody but this user may enter, and name a socket in it.

    Args:
        temporary: Where temporary files belong; the first choice, if its path is short enough.

    Returns:
        The path of a socket that is not there yet.

    Raises:
        WorkerNotStarted: No folder for temporary files is short enough and can be written.

    Example:
        >>> socket_in_new_folder(Path("/tmp"))  # doctest: +SKIP
        PosixPath('/tmp/pennon-worker-x0pbqn3f/worker.sock')
    """
    refusals = []
    for place in dict.fromkeys(_places(temporary)):
        longest = place / f"{_PREFIX}{'0' * 8}" / _SOCKET
        if len(os.fsencode(longest)) > _MAX_PATH_BYTES:
            refusals.append(f"{place} is too long for a socket")
            continue
        try:
            return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)) / _SOCKET
        except OSError as error:
            refusals.append(f"{place} cannot be written ({error.strerror})")
    why = "its socket needs a temporary directory with a short path, and " + ", ".join(refusals)
    raise WorkerNotStarted(python=sys.executable, why=why)


def _places(temporary: Path) -> Iterator[Path]:
    """Give the choices; the user's runtime folder late, for it goes when the user logs out."""
    yield temporary.absolute()
    yield Path("/tmp")  # noqa: S108 - as is the next: a folder is made in it, for this user alone
    yield Path("/var/tmp")  # noqa: S108
    runtime = os.environ.get("XDG_RUNTIME_DIR", "").strip()
    if runtime:
        yield Path(runtime).absolute()
    yield Path("/dev/shm")  # noqa: S108


def remove_abandoned_sockets(own: Path) -> list[Path]:
    """Remove the folders beside a worker's own whose sockets nobody listens on.

    Args:
        own: The worker's socket, in a folder of its own.

    Returns:
        What was removed: folders of this user, older than an hour, with nothing in them but a
        socket that refuses connections.

    Example:
        >>> remove_abandoned_sockets(Path("/tmp/pennon-worker-a/worker.sock"))  # doctest: +SKIP
        [PosixPath('/tmp/pennon-worker-b')]
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
