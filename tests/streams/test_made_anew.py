"""A stream goes on with the table that it has read: another one at its place is told from it."""

from __future__ import annotations

import datetime as dt
import shutil
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from tests.streams.follower import Follower

import pennon
from pennon.errors import StreamPositionExpired, TableMadeAnew
from pennon.streams import StreamPosition

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, *ids: int) -> None:
    """Add rows to a plain dataset, one commit each."""
    for id_ in ids:
        mode = "append" if path.exists() else "create"
        lance.write_dataset(pa.table({"id": pa.array([id_], pa.int64())}), str(path), mode=mode)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    write(tmp_path / "plain.lance", 1, 2, 3, 4)
    return tmp_path / "plain.lance"


def test_a_plain_dataset_is_read_on_across_restarts(plain: Path) -> None:
    follower = Follower(str(plain))
    assert follower.read() == [1, 2, 3, 4]
    for id_ in (5, 6):
        write(plain, id_)
        follower = follower.again()
        assert follower.read() == [id_]
    assert follower.end().to_json() == follower.position.to_json()


@pytest.mark.parametrize("commits", [1, 4, 6])
def test_a_plain_dataset_that_was_made_anew_ends_a_stream(plain: Path, commits: int) -> None:
    """However many versions the new one has: none of its rows may be passed over."""
    follower = Follower(str(plain))
    follower.read()
    shutil.rmtree(plain)
    write(plain, *range(100, 100 + commits))
    for one in (follower, follower.again()):
        with pytest.raises(TableMadeAnew, match="with another checkpoint"):
            one.read()


@pytest.mark.parametrize("commits", [1, 6])
def test_an_unfinished_batch_is_not_read_of_another_dataset(plain: Path, commits: int) -> None:
    follower = Follower(str(plain))
    first = follower.end()
    follower.read()
    write(plain, 5)
    second = follower.end()
    shutil.rmtree(plain)
    write(plain, *range(100, 100 + commits))
    with pytest.raises(TableMadeAnew):
        follower.again().read(second)
    with pytest.raises(TableMadeAnew):
        Follower(str(plain)).read(first)


def test_a_plain_dataset_that_became_a_namespace_ends_a_stream(plain: Path) -> None:
    follower = Follower(str(plain))
    follower.read()
    kept = StreamPosition(follower.position.version, "")
    shutil.rmtree(plain)
    table = pennon.create(str(plain), pa.schema({"id": pa.int64()}), [])
    for id_ in range(6):
        table.append([{"id": id_}])
    for position in (follower.position, kept):
        with pytest.raises(TableMadeAnew):
            Follower(str(plain), position=position).read()


def test_a_version_that_has_expired_is_told_as_such(plain: Path) -> None:
    follower = Follower(str(plain))
    follower.read()
    write(plain, 5, 6)
    lance.dataset(str(plain)).cleanup_old_versions(dt.timedelta(0))
    with pytest.raises(StreamPositionExpired, match="version 4 has expired"):
        follower.again().read()


def test_a_table_that_was_put_back_to_an_older_copy_ends_a_stream(tmp_path: Path) -> None:
    """It is the same table by its secret, and lacks versions whose rows were read."""
    table = pennon.create(str(tmp_path / "t"), pa.schema({"id": pa.int64()}), [])
    table.append([{"id": 1}])
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    table.append([{"id": 2}])
    follower = Follower(table.location)
    assert sorted(follower.read()) == [1, 2]
    shutil.rmtree(tmp_path / "t")
    shutil.copytree(tmp_path / "copy", tmp_path / "t")
    with pytest.raises(TableMadeAnew):
        follower.again().read()


def test_positions_of_older_checkpoints_are_read(plain: Path) -> None:
    kept = '{"version": 4, "table": ""}'
    follower = Follower(str(plain), position=StreamPosition.from_json(kept))
    assert follower.end().to_json() == kept
    write(plain, 5)
    assert follower.read() == [5]
