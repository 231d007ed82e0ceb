"""A worker's own folder for temporary files, which goes with it or after it.

Rows that do not fit the memory are written to files, some of them by DataFusion and by Lance. What
a killed worker had written, gigabytes perhaps, would stay for ever. So all of it goes into one
folder, on which the process holds a lock until it is gone, however it ends: the next worker removes
the folders that nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["remove_abandoned_files", "temporary_files_in_own_folder"]

_PREFIX: Final = "pennon-files-"
_FOLDER: Final = re.compile(f"{_PREFIX}[0-9a-z_]+")


def temporary_files_in_own_folder() -> Path | None:
    """Make a folder below the one for temporary files, and let all of the process's go there.

    Returns:
        The folder; None where no folder can be made: what needs a file then says so.

    Example:
        >>> temporary_files_in_own_folder()  # doctest: +SKIP
        PosixPath('/tmp/pennon-files-x0pbqn3f')
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Before it is locked another worker may take it for abandoned. The lock is not given back.
        while _locked(folder) is None:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
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
        if folder == own or not _FOLDER.fullmatch(folder.name):
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
