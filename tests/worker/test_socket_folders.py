"""A worker listens in a folder of its user's, and removes what killed ones have left."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from pennon.worker.folders import remove_abandoned_sockets, socket_in_new_folder

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
    own = made("pennon-worker-1")
    dead = made("pennon-worker-2")
    empty = tmp_path / "pennon-worker-3"
    empty.mkdir()
    os.utime(empty, (0, 0))
    kept = [
        made("pennon-worker-4", is_old=False),
        made("pennon-worker-5", is_heard=True),
        made("other-6"),
    ]
    used = made("pennon-worker-7")
    (used / "notes").write_text("mine")
    os.utime(used, (0, 0))
    (tmp_path / "pennon-worker-8").symlink_to(kept[0])
    found = remove_abandoned_sockets(own / "worker.sock")
    for socket_ in open_sockets:
        socket_.close()
    assert sorted(found) == [dead, empty]
    assert {path.name for path in tmp_path.iterdir()} == {
        *(path.name for path in (own, *kept, used)),
        "pennon-worker-8",
    }


def test_the_folder_is_made_where_temporary_files_belong_for_this_user_alone(
    tmp_path: Path,
) -> None:
    socket_path = socket_in_new_folder(tmp_path)
    assert socket_path.parent.parent == tmp_path
    assert socket_path.parent.stat().st_mode & 0o777 == 0o700


def test_a_folder_whose_path_is_too_long_for_a_socket_is_passed_over(tmp_path: Path) -> None:
    long = tmp_path / ("c" * 107)
    long.mkdir()
    socket_path = socket_in_new_folder(long)
    assert list(long.iterdir()) == []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(socket_path))
    socket_path.unlink()
    socket_path.parent.rmdir()
