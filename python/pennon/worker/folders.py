"""The folders of the workers' sockets: one is made at a start, abandoned ones are removed.

The path of a Unix socket has at most 107 bytes. The temporary folder of a container on YARN is
longer than that, so the system's own folders for temporary files are next in turn.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pennon.errors import WorkerNotStarted

__all__ = [
    "remove_abandoned_files",
    "remove_abandoned_sockets",
    "socket_in_new_folder",
    "temporary_files_in_own_folder",
]

# A worker's own folder for temporary files, which goes with it or after it.
#
# Rows that do not fit the memory are written to files, some of them by DataFusion and by Lance.
# What a killed worker had written, gigabytes perhaps, would stay for ever. So all of it goes into
# one folder, on which the process holds a lock until it is gone, however it ends: the next worker
# removes the folders that nobody holds.

_FILE_PREFIX: Final = "pennon-files-"
_FILES_FOLDER: Final = re.compile(f"{_FILE_PREFIX}[0-9a-z_]+")


def temporary_files_in_own_folder() -> Path | None:
    """Make a folder below the one for temporary files, and let all of the process's go there.

    Returns:
        The folder; None where no folder can be made: what needs a file then says so.

    Example:
        >>> temporary_files_in_own_folder()  # doctest: +SKIP
        PosixPath('/tmp/pennon-files-x0pbqn3f')
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=_FILE_PREFIX))
        # Before it is locked another worker may take it for abandoned. The lock is not given back.
        while _locked(folder) is None:
            folder = Path(tempfile.mkdtemp(prefix=_FILE_PREFIX))
    except OSError:
        return None
    # Rust reads the variable each time, Python's own module keeps what it has read.
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return folder


def remove_abandoned_files(own: Path) -> list[Path]:
    """Remove the folders beside a worker's own that no process holds.

    Args:
        own: The worker's folder.

    Returns:
        What was removed: folders of this user.

    Example:
        >>> remove_abandoned_files(Path("/tmp/pennon-files-a"))  # doctest: +SKIP
        [PosixPath('/tmp/pennon-files-b')]
    """
    removed = []
    for folder in own.parent.iterdir():
        if folder == own or not _FILES_FOLDER.fullmatch(folder.name):
            continue
        try:
            if folder.lstat().st_uid != os.geteuid() or (lock := _locked(folder)) is None:
                continue
        except OSError:  # it is no folder, or goes meanwhile
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        removed.append(folder)
    return removed


def _locked(folder: Path) -> int | None:
    """Take the lock on a folder, which ends with the descriptor.

    Returns:
        The descriptor; None where another process has the lock, or has removed the folder.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    if not folder.exists():
        os.close(descriptor)
        return None
    return descriptor


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
