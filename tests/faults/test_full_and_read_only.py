"""A disk without room, or that takes no write: a clear error, the table as it was, room again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import StorageFailure, StorageFull

SCHEMA = pa.schema({"id": pa.int64(), "part": pa.int32(), "text": pa.string()})


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may mount no file system")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def table(disk: Path) -> pennon.PartitionedNamespace:
    made = pennon.create(f"{disk}/t", SCHEMA, partition_by=["part"])
    for first in (0, 8):  # two files in each of two partitions
        made.append([{"id": first + at, "part": at % 2, "text": "x" * 100} for at in range(8)])
    return made


def files(table: pennon.PartitionedNamespace) -> set[Path]:
    return {path for path in Path(table.location).rglob("*") if path.is_file()}


def statements(table: pennon.PartitionedNamespace) -> dict[str, Callable[[], object]]:
    large = [{"id": at, "part": at % 2, "text": str(at) * 500} for at in range(100)]
    return {
        "a large append": lambda: table.append(large),
        "a small append": lambda: table.append([{"id": 99, "part": 7}]),
        "an overwrite": lambda: table.overwrite([{"id": 99, "part": 0}], where="part = 0"),
        "an update": lambda: table.update({"text": "'new'"}, "id = 3"),
        "a delete": lambda: table.delete("id = 3"),
        "a compaction": table.maintenance.compact,
    }


def state(table: pennon.PartitionedNamespace) -> list[dict[str, object]]:
    assert not table.refresh().maintenance.check().violations
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def fill(disk: Path, *, left: int) -> None:
    room = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"x" * max(0, room.f_bavail * room.f_bsize - left))


def test_a_full_disk_fails_every_statement_and_vacuum_gives_its_room_back(disk: Path) -> None:
    made = table(disk)
    before, there = state(made), files(made)
    for name, run in statements(made).items():
        for left in (0, 12_000):  # nothing is staged; the commit fails
            fill(disk, left=left)
            with pytest.raises(StorageFull, match=r"no space is left there\. Make room"):
                run()
            (disk / "ballast").unlink()
            assert state(made) == before, name
            long_ago = time.time() - 7200  # of the manifest no young file goes
            for file in files(made):
                os.utime(file, (long_ago, long_ago))
            made.maintenance.vacuum(datetime.now(UTC) + timedelta(minutes=1))
            assert files(made) <= there, name
    for run in statements(made).values():
        run()
    assert not made.maintenance.check().violations


def test_a_disk_that_takes_no_write_fails_every_statement_and_is_read(disk: Path) -> None:
    made = table(disk)
    before, there = state(made), files(made)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for run in statements(made).values():
        with pytest.raises(StorageFailure, match="Read-only file system"):
            run()
    assert (state(made), files(made)) == (before, there)
