"""A worker removes what a JVM and a worker that were killed together have left."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from pennon.worker.abandoned_sockets import remove_abandoned_sockets

if TYPE_CHECKING:
    from pathlib import Path


def test_folders_of_sockets_that_nobody_listens_on_go(tmp_path: Path) -> None:
    def made(name: str, *, is_old: bool = True, is_heard: bool = False) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(folder / "worker.sock"))
        if is_heard:
            listening.listen()
            open_sockets.append(listening)
        else:
            listening.close()
        if is_old:
            os.utime(folder, (0, 0))
        return folder

    open_sockets: list[socket.socket] = []
    own = made("pennon-1")
    dead = made("pennon-2")
    empty = tmp_path / "pennon-3"
    empty.mkdir()
    os.utime(empty, (0, 0))
    kept = [made("pennon-4", is_old=False), made("pennon-5", is_heard=True), made("other-6")]
    used = made("pennon-7")
    (used / "notes").write_text("mine")
    os.utime(used, (0, 0))
    (tmp_path / "pennon-8").symlink_to(kept[0])
    found = remove_abandoned_sockets(own / "worker.sock")
    for socket_ in open_sockets:
        socket_.close()
    assert sorted(found) == [dead, empty]
    assert {path.name for path in tmp_path.iterdir()} == {
        *(path.name for path in (own, *kept, used)),
        "pennon-8",
    }
