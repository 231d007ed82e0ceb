"""Tags: what a tagged version reads stays, whatever expires around it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl.alter import alter_table
from pennon.catalog.ddl.statements import STATEMENT
from pennon.cli import main
from pennon.errors import (
    BranchesNotSupported,
    PennonError,
    SnapshotNotFound,
    TableVersionNotFound,
    TagAlreadyExists,
    TagNotFound,
    TagRefused,
    TagSyntax,
)
from pennon.maintenance import expire as expire_module
from pennon.manifest.versions import tags as set_tag
from pennon.namespace import PartitionedNamespace

SCHEMA = pa.schema({"id": pa.int64(), "region": pa.string()})
FUTURE = timedelta(minutes=1)


@pytest.fixture
def table(tmp_path: Path) -> PartitionedNamespace:
    made = pennon.create(tmp_path / "t", SCHEMA, partition_by=["region"])
    made.append([{"id": 1, "region": "eu"}, {"id": 2, "region": None}])
    return made


def ids(table: PartitionedNamespace, version: int | str | None = None) -> list[int]:
    return sorted(table.scan(version=version).to_arrow()["id"].to_pylist())


def alter(table: PartitionedNamespace, statement: str) -> None:
    change = {"change": "set_property", "property": STATEMENT, "value": statement}
    alter_table(Catalog("lance", "/"), (table.location,), [change])


def test_what_a_tag_names_stays_until_the_tag_goes(table: PartitionedNamespace) -> None:
    alter(table, "CREATE TAG `q-1`")
    alter(table, "CREATE TAG short RETAIN 1 MINUTES")
    tagged = table.version
    table.delete("id = 1")
    table.overwrite([{"id": 3, "region": "us"}])
    for _ in range(2):
        done = table.maintenance.expire_snapshots(datetime.now(UTC) + FUTURE)
        table.maintenance.vacuum(datetime.now(UTC) + FUTURE)
        assert tagged not in done.versions
    assert (ids(table, "q-1"), ids(table)) == ([1, 2], [3])
    assert ids(pennon.open(table.location, "q-1")) == [1, 2]
    assert table.maintenance.check(tagged).is_valid
    table.drop_tag("q-1")
    assert tagged not in table.maintenance.expire_snapshots(datetime.now(UTC) + FUTURE).versions
    lance.dataset(f"{table.location}/__manifest").tags.replace_metadata(
        "short", {"pennon.max-ref-age-ms": "0"}
    )
    listed = table.maintenance.expire_snapshots(datetime.now(UTC) + FUTURE, dry_run=True)
    assert (listed.tags, ids(table, tagged)) == (["short"], [1, 2])
    done = table.maintenance.expire_snapshots(datetime.now(UTC) + FUTURE)
    assert done == listed
    assert (done.tags, done.versions) == (["short"], [tagged])
    assert done.leaf_versions > 0
    with pytest.raises(SnapshotNotFound):
        ids(table, tagged)
    assert ids(table) == [3]


def test_tags_are_made_moved_and_dropped_as_statements_say(table: PartitionedNamespace) -> None:
    first = table.version
    second = table.append([{"id": 3}])
    alter(table, f"CREATE TAG a.b AS OF VERSION {first} RETAIN 2 HOURS")
    alter(table, "CREATE TAG IF NOT EXISTS a.b")
    assert table.tags()["a.b"].version == first
    alter(table, "REPLACE TAG a.b")
    assert (table.tags()["a.b"].version, table.tags()["a.b"].retain) == (second, timedelta(hours=2))
    alter(table, f"CREATE OR REPLACE TAG a.b AS OF VERSION {first} RETAIN 3 DAYS")
    refs = table.metadata("refs").to_pylist()
    assert [(row["name"], row["type"], row["snapshot_id"]) for row in refs] == [
        ("main", "BRANCH", second),
        ("a.b", "TAG", first),
    ]
    assert refs[1]["max_reference_age_in_ms"] == timedelta(days=3) // timedelta(milliseconds=1)
    alter(table, "DROP TAG a.b")
    alter(table, "DROP TAG IF EXISTS a.b")
    assert table.tags() == {}


def test_main_names_the_newest_version_wherever_a_tag_names_one(
    table: PartitionedNamespace, tmp_path: Path
) -> None:
    since = table.version
    table.append([{"id": 3, "region": "eu"}])
    refs = {row["name"]: row["snapshot_id"] for row in table.metadata("refs").to_pylist()}
    assert pennon.open(table.location, "main").version == refs["main"] == table.version
    assert ids(table, "main") == ids(table)
    assert table.changes(since, "main")["id"].to_pylist() == [3]
    plain = str(tmp_path / "plain.lance")
    lance.write_dataset(pa.table({"id": [1]}), plain)
    pennon.open(plain).append([{"id": 2}])
    assert pennon.open(plain, "main").version == 2
    with pytest.raises(TableVersionNotFound, match="it has no tags"):
        pennon.open(table.location, "Main")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE TAG there", TagAlreadyExists),
        ("REPLACE TAG absent", TagNotFound),
        ("DROP TAG absent", TagNotFound),
        ("CREATE TAG 2026", TagRefused),
        ("CREATE TAG main", TagRefused),
        ("CREATE TAG `Ünicode`", TagRefused),
        ("CREATE TAG `a b`", TagRefused),
        ("CREATE TAG a..b", TagRefused),
        ("CREATE TAG a.lock", TagRefused),
        ("CREATE TAG x AS OF VERSION 77", SnapshotNotFound),
        ("CREATE TAG x AS OF VERSION y", TagSyntax),
        ("CREATE TAG x RETAIN 5 YEARS", TagSyntax),
        ("CREATE TAG x y", TagSyntax),
        ("DROP TAG", TagSyntax),
        ("CREATE BRANCH b", BranchesNotSupported),
        ("DROP BRANCH IF EXISTS b", BranchesNotSupported),
    ],
)
def test_what_no_tag_can_be_is_refused(
    table: PartitionedNamespace, statement: str, error: type[PennonError]
) -> None:
    table.create_tag("there")
    with pytest.raises(error):
        alter(table, statement)
    assert list(table.tags()) == ["there"]


def test_a_version_that_nothing_holds_gets_no_tag(tmp_path: Path) -> None:
    weak = pennon.create(tmp_path / "weak", SCHEMA, properties={"transaction": "weak"})
    weak.append([{"id": 1}])
    with pytest.raises(TagRefused, match="weak|strong"):
        weak.create_tag("x")


def test_a_plain_dataset_has_lances_own_tags(tmp_path: Path) -> None:
    plain = str(tmp_path / "plain.lance")
    lance.write_dataset(pa.table({"id": [1]}), plain)
    table = pennon.open(plain)
    table.create_tag("first")
    table.append([{"id": 2}])
    assert (ids(table, "first"), ids(table)) == ([1], [1, 2])
    assert lance.dataset(plain, version="first").count_rows() == 1
    with pytest.raises(TableVersionNotFound, match="its tags are first"):
        pennon.open(plain, "second")


def test_the_command_line_names_versions(
    table: PartitionedNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tag", table.location, "q1", "--retain-days", "30"]) == 0
    table.append([{"id": 3}])
    assert main(["tag", table.location]) == 0
    assert "30 days" in capsys.readouterr().out
    assert main(["describe", table.location, "--version", "q1"]) == 0
    assert ", 2 rows" in capsys.readouterr().out
    assert main(["tag", table.location, "q1"]) == 1
    refused = capsys.readouterr().err
    assert "TAG_ALREADY_EXISTS" in refused
    assert "(--replace on the command line, replace=True in Python)" in refused
    assert main(["tag", table.location, "q1", "--replace"]) == 0
    assert main(["tag", table.location, "q1", "--drop"]) == 0
    assert table.tags() == {}


def test_what_a_branch_may_read_stays(table: PartitionedNamespace) -> None:
    manifest = lance.dataset(f"{table.location}/__manifest")
    manifest.create_branch("elsewhere", table.version)
    table.overwrite([{"id": 3, "region": "us"}])
    future = datetime.now(UTC) + FUTURE
    assert table.maintenance.expire_snapshots(future).versions == []
    manifest.cleanup_old_versions(retain_versions=1)
    done = table.maintenance.vacuum(future)
    assert (done.files, done.notes) == (
        [],
        ["its __manifest has branches, which may read any file"],
    )
    plan = table.scan().plan()
    assert plan.num_rows == 1


def test_a_tag_is_made_and_dropped_beside_readers_and_writers(tmp_path: Path) -> None:
    """Lance borrows the object by which a tag is changed, and all threads shared one."""
    table = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64()}))
    table.append([{"id": 0}])
    is_over = threading.Event()

    def read() -> int:
        count = 0
        while not is_over.is_set():
            count += pennon.open(table.location).scan("id >= 0").count_rows()
        return count

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for number in range(60):
                other = pennon.open(table.location)
                other.create_tag(f"t{number}")
                other.drop_tag(f"t{number}")
        finally:
            is_over.set()
        assert all(reader.result() for reader in readers)


def before_first(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]
) -> None:
    """Do something once, before the first call of a function: whoever calls it stands still."""
    real = vars(module)[name]

    def stalled(*arguments: Any, **named: Any) -> object:
        monkeypatch.setattr(module, name, real)
        act()
        return real(*arguments, **named)

    monkeypatch.setattr(module, name, stalled)


def expire_all(table: PartitionedNamespace) -> list[int]:
    return table.maintenance.expire_snapshots(datetime.now(UTC) + FUTURE).versions


@pytest.mark.parametrize("step", ["_write", "_check_is_there"])
def test_a_tag_that_stands_still_beside_an_expiry_names_what_is_there_or_is_refused(
    table: PartitionedNamespace, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    table.create_tag("there")
    old = table.version
    table.append([{"id": 3, "region": "us"}])
    newest = table.append([{"id": 4, "region": "us"}])
    before_first(monkeypatch, set_tag, step, lambda: expire_all(table))
    if step == "_write":
        with pytest.raises(TagRefused, match=f"its version {old + 1} is gone"):
            table.create_tag("there", old + 1, replace=True)
    else:  # the expiry has seen the tag
        table.create_tag("there", old + 1, replace=True)
    there = old if step == "_write" else old + 1
    assert {name: tag.version for name, tag in table.tags().items()} == {"there": there}
    assert ids(table, "there") == [1, 2, 3][: there - old + 2]
    assert ids(table, newest) == [1, 2, 3, 4]


def test_a_version_that_gets_a_tag_while_an_expiry_stands_still_stays(
    table: PartitionedNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = table.version
    table.append([{"id": 3, "region": "us"}])
    before_first(monkeypatch, expire_module, "_mark", lambda: table.create_tag("kept", old))
    assert old not in expire_all(table)
    assert ids(table, "kept") == [1, 2]
