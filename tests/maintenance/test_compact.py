"""Compaction: the same rows in fewer files, and no writer beside it ever notices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.streams.follower import Follower
from tests.transaction.lake import append, latest, make, regions, stage
from tests.transaction.lake import read as read_rows
from tests.transaction.test_row_changes import change

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.cli import main
from pennon.errors import InternalError, ProcedureArgument, TablePropertyRefused
from pennon.maintenance import compact as leaf_rewrite
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.compact import _Compaction, _Planned, compact
from pennon.maintenance.procedures import call
from pennon.maintenance.vacuum import vacuum
from pennon.manifest import Snapshot, change_root
from pennon.manifest.versions.history import history
from pennon.transaction import Committed, Conflicted, Transaction


def fragmented(tmp_path: Path) -> Snapshot:
    snapshot = make(tmp_path)
    for number in range(4):
        snapshot = append(
            snapshot, {number * 10: "eu", number * 10 + 1: "us", number * 10 + 2: None}
        )
    return snapshot


def rewrite(snapshot: Snapshot, ids: list[int]) -> Transaction:
    """A compaction of the partition eu that has written its files."""
    (leaf,) = [
        row for row in snapshot.leaves().table.to_pylist() if row["partition_field_region"] == "eu"
    ]
    dataset = lance.dataset(f"{snapshot.location}/{leaf['location']}", leaf["read_version"])
    transaction = Transaction(snapshot, operation="compact")
    numbers = [fragment.fragment_id for fragment in dataset.get_fragments()]
    staged = stage(snapshot, dict.fromkeys(ids, "eu"))
    transaction.rewrite(staged, numbers, leaf["read_version"])
    return transaction


def fragments(snapshot: Snapshot) -> list[int]:
    return snapshot.leaves().table["num_fragments"].to_pylist()


def test_the_rows_stay_and_the_files_become_few(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    before = regions(snapshot)
    done = compact(snapshot.location)
    assert (done.leaves, done.files_before, done.files_after, done.num_rows) == (3, 12, 3, 12)
    assert regions(latest(snapshot)) == regions(snapshot) == before
    assert fragments(latest(snapshot)) == [1, 1, 1]
    assert history(snapshot.location)[-1].operation in ("compact", "maintenance")
    assert check(snapshot.location).is_valid
    assert compact(snapshot.location).leaves == 0


def test_a_condition_chooses_partitions(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    assert compact(snapshot.location, where="region = 'eu'").leaves == 1
    assert sorted(fragments(latest(snapshot))) == [1, 4, 4]


@pytest.mark.parametrize("kind", ["append", "replace", "drop"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_write_based_on_what_was_compacted_goes_on(tmp_path: Path, kind: str, times: int) -> None:
    snapshot = fragmented(tmp_path)
    (leaf,) = [
        row["object_id"]
        for row in snapshot.leaves().table.to_pylist()
        if row["partition_field_region"] == "eu"
    ]
    transaction = Transaction(snapshot)
    if kind in ("append", "replace"):
        getattr(transaction, kind)(stage(snapshot, {99: "eu"}))
    else:
        transaction.drop([leaf])
    compact(snapshot.location)
    if times == 2:
        append(latest(snapshot), {55: "us"})
        assert isinstance(rewrite(latest(snapshot), regions(snapshot)["eu"]).commit(), Committed)
    assert isinstance(transaction.commit(), Committed)
    expected = {"append": [0, 10, 20, 30, 99], "replace": [99]}
    assert regions(latest(snapshot)).get("eu") == expected.get(kind)
    assert check(snapshot.location).is_valid


def test_a_compaction_yields_to_a_write(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    compaction = rewrite(snapshot, regions(snapshot)["eu"])
    assert isinstance(change(snapshot, {10}).commit(), Committed)
    assert isinstance(compaction.commit(), Conflicted)
    assert regions(latest(snapshot))["eu"] == [0, 20, 30]


def test_a_compaction_goes_on_over_an_append_which_an_overwrite_still_sees(tmp_path: Path) -> None:
    snapshot = fragmented(tmp_path)
    compaction = rewrite(snapshot, regions(snapshot)["eu"])
    overwrite = Transaction(snapshot)
    overwrite.replace(stage(snapshot, {99: "eu"}))
    append(snapshot, {77: "eu"})
    assert isinstance(compaction.commit(), Committed)
    assert isinstance(overwrite.commit(), Conflicted)
    assert regions(latest(snapshot))["eu"] == [0, 10, 20, 30, 77]
    assert sorted(fragments(latest(snapshot))) == [2, 4, 4]
    assert check(snapshot.location).is_valid


@pytest.mark.parametrize("order", [None, "id DESC"])
@pytest.mark.parametrize("read", [[], [["id < 1000", "region = 'eu'"]]])
@pytest.mark.parametrize("times", [1, 2])
def test_rows_that_were_compacted_meanwhile_are_changed(
    tmp_path: Path, order: str | None, read: list[list[str]], times: int
) -> None:
    """The statement has found its rows; compactions and deletions of others come first."""
    snapshot = fragmented(tmp_path)
    if order is not None:
        change_root(snapshot, properties={"write.order": order})
    snapshot = append(latest(snapshot), dict.fromkeys((105, 103, 104), "eu"))
    changed = change(snapshot, {103}).commit()
    assert isinstance(changed, Committed)
    snapshot = changed.snapshot
    mine = change(snapshot, {10, 105}, {11: "eu", 12: "new"}, read)
    assert compact(snapshot.location, where="region = 'eu'").leaves == 1
    if times == 2:
        if not read:
            append(append(latest(snapshot), {200: "eu"}), {201: "eu"})
        else:
            append(append(latest(snapshot), {200: "us"}), {201: "us"})
        compact(snapshot.location)
    assert isinstance(mine.commit(), Committed)
    added = [200, 201] if times == 2 and not read else []
    assert regions(latest(snapshot))["eu"] == [0, 11, 20, 30, 104, *added]
    assert regions(latest(snapshot))["new"] == [12]
    assert check(snapshot.location).is_valid


def test_a_row_that_another_statement_changed_before_the_compaction_is_a_conflict(
    tmp_path: Path,
) -> None:
    snapshot = fragmented(tmp_path)
    mine, theirs = change(snapshot, {10}, {11: "eu"}), change(snapshot, {10}, {12: "eu"})
    assert isinstance(theirs.commit(), Committed)
    compact(snapshot.location)
    assert isinstance(mine.commit(), Conflicted)
    assert regions(latest(snapshot))["eu"] == [0, 12, 20, 30]


@pytest.mark.parametrize("order", [None, "id DESC"])
def test_rows_of_which_nobody_knows_any_more_where_they_went_are_a_conflict(
    tmp_path: Path, order: str | None
) -> None:
    snapshot = fragmented(tmp_path)
    if order is not None:
        change_root(snapshot, properties={"write.order": order})
    mine = change(latest(snapshot), {10})
    compact(snapshot.location, where="region = 'eu'")
    vacuum(snapshot.location, older_than=datetime.now(UTC) + timedelta(days=1))
    assert isinstance(mine.commit(), Conflicted)
    assert regions(latest(snapshot))["eu"] == [0, 10, 20, 30]


def test_rows_that_go_while_a_compaction_looks_again_do_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = fragmented(tmp_path)
    look = _Compaction._rewrites
    gone = iter([0, 10])

    def found(self: _Compaction, *asked: Any) -> list[_Planned]:
        rewrites = look(self, *asked)
        for id_ in (next(gone, None),):
            if id_ is not None:
                change(latest(snapshot), {id_}).commit()
        return rewrites

    monkeypatch.setattr(_Compaction, "_rewrites", found)
    assert compact(snapshot.location, where="region = 'eu'").num_rows == 2
    assert regions(latest(snapshot))["eu"] == [20, 30]
    # The rewrites that met a commit have left no file.
    assert len(list(Path(snapshot.location).rglob("*.places"))) == 1


def test_a_rewrite_of_files_as_they_were_before_the_snapshot_is_refused(tmp_path: Path) -> None:
    before = fragmented(tmp_path)
    compaction = rewrite(before, regions(before)["eu"])
    change(before, {10}).commit()
    compaction.snapshot = latest(before)
    with pytest.raises(InternalError):
        compaction.commit()
    assert regions(latest(before))["eu"] == [0, 20, 30]


@pytest.mark.parametrize("at", ["staging", "committing"])
def test_a_failure_of_any_kind_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    snapshot = fragmented(tmp_path)

    def fails(*_: object) -> None:
        raise MemoryError

    if at == "staging":
        monkeypatch.setattr(leaf_rewrite, "record_places", fails)
    else:
        monkeypatch.setattr(Transaction, "_sent", fails)
    before = sorted(Path(snapshot.location).glob("*/data/*"))
    with pytest.raises(MemoryError):
        compact(snapshot.location)
    monkeypatch.undo()
    there = sorted(Path(snapshot.location).glob("*/data/*"))
    assert [path for path in there if path.parts[-3] != "__manifest"] == [
        path for path in before if path.parts[-3] != "__manifest"
    ]
    assert compact(snapshot.location).leaves == 3


def test_only_small_files_and_those_with_many_deleted_rows_are_rewritten(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), dict.fromkeys(range(20000), "eu"))
    for number in (50_000, 50_001):
        snapshot = append(snapshot, {number: "eu"})
    assert compact(snapshot.location, target_bytes=4096, dry_run=True).partitions == ["region=eu"]
    done = compact(snapshot.location, target_bytes=4096)
    assert (done.files_before, done.files_after, done.num_rows) == (2, 1, 2)
    change(latest(snapshot), set(range(9000))).commit()
    done = compact(snapshot.location, target_bytes=4096)
    assert (done.files_before, done.num_rows) == (1, 11_000)
    assert regions(latest(snapshot))["eu"] == [*range(9000, 20_000), 50_000, 50_001]


def test_the_strategy_sort_brings_every_partition_into_the_write_order(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {3: "eu", 1: "eu", 2: "us"})
    assert compact(snapshot.location, strategy="sort").notes
    change_root(snapshot, properties={"write.order": "id"})
    assert compact(snapshot.location, strategy="sort").leaves == 2
    assert [row["id"] for row in read_rows(latest(snapshot)) if row["region"] == "eu"] == [1, 3]
    assert compact(snapshot.location, strategy="sort").leaves == 0


def test_writers_beside_compactions_lose_nothing(tmp_path: Path) -> None:
    base = fragmented(tmp_path)

    def write() -> None:
        for number in range(100, 110):
            append(latest(base), {number: "eu"})

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write)
        while not writing.done():
            compact(base.location)
        writing.result()
    compact(base.location)
    assert regions(latest(base))["eu"] == [0, 10, 20, 30, *range(100, 110)]
    assert check(base.location).is_valid


def test_the_command_and_the_procedure_do_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = fragmented(tmp_path)
    arguments = {"table": snapshot.location, "where": "region = 'eu'"}
    ((leaves, *_),) = call(Catalog("lance", str(tmp_path)), "compact", arguments).rows
    assert leaves == 1
    assert main(["compact", snapshot.location]) == 0
    assert "2 leaves" in capsys.readouterr().out
    assert fragments(latest(snapshot)) == [1, 1, 1]


def test_partitions_of_equal_values_in_two_specs_are_each_compacted(tmp_path: Path) -> None:
    table = pennon.open(make(tmp_path).location)
    for by in ("bucket(2, id)", None):
        for number in range(2):
            table.append([{"id": number, "region": "eu"}])
        if by is not None:
            table.add_partition_field(by, "halves")
            table.drop_partition_field("halves")
    planned = compact(table.location, dry_run=True)
    assert (planned.leaves, planned.partitions) == (2, ["region=eu", "region=eu"])
    assert compact(table.location).leaves == 2
    assert fragments(Snapshot.open(table.location)) == [1, 1]
    assert table.scan().count_rows() == 4


@pytest.mark.parametrize("target_bytes", [0, -1])
def test_files_of_no_size_are_no_target(tmp_path: Path, target_bytes: int) -> None:
    snapshot = fragmented(tmp_path)
    arguments = {"table": snapshot.location, "target_bytes": target_bytes}
    with pytest.raises(ProcedureArgument, match="target_bytes"):
        call(Catalog("lance", str(tmp_path)), "compact", arguments)


def test_partitions_that_were_empty_before_go_and_nobody_notices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that row by row statements emptied when these left the partition in the manifest."""
    base = append(make(tmp_path), {1: "eu", 2: "us", 3: None})
    monkeypatch.setattr("pennon.transaction.strong._Attempt._removes", lambda *_: False)
    assert isinstance(change(base, {1, 3}).commit(), Committed)
    monkeypatch.undo()
    snapshot = latest(base)
    assert regions(snapshot) == {"eu": [], "us": [2], None: []}
    append_, replace, drop = (Transaction(snapshot) for _ in range(3))
    append_.append(stage(snapshot, {4: "eu"}))
    replace.replace(stage(snapshot, {5: None}))
    empty = [row for row in snapshot.leaves().table.to_pylist() if row["num_rows"] == 0]
    drop.drop(row["object_id"] for row in empty if row["partition_field_region"] == "eu")
    merge = change(snapshot, {2}, {7: "us"}, [["soundex(region) = 'E000'"]], "merge")
    stream = Follower(base.location)
    assert sorted(stream.read()) == [2]
    assert len(compact(base.location, dry_run=True).partitions) == 2
    assert compact(base.location).leaves == 2
    assert compact(base.location).leaves == 0
    assert regions(latest(base)) == {"us": [2]}
    assert stream.read() == []
    assert pennon.open(base.location).changes(snapshot.version).num_rows == 0
    assert isinstance(merge.commit(), Committed)
    stream = Follower(base.location)
    assert sorted(stream.read()) == [7]
    for transaction in (drop, append_):
        assert isinstance(transaction.commit(), Committed)
    assert sorted(stream.read()) == [4]
    assert isinstance(replace.commit(), Committed)
    assert regions(latest(base)) == {"eu": [4], "us": [7], None: [5]}
    assert check(base.location).is_valid


def test_files_are_written_and_rewritten_with_the_codec_of_the_table_s_property(
    tmp_path: Path,
) -> None:
    columns = {"id": pa.int64(), "price": pa.decimal128(15, 2), "r": pa.string()}
    prices = pa.array(list(map(Decimal, range(20_000))), columns["price"])
    rows = pa.table([range(20_000), prices, ["a", "b"] * 10_000], schema=pa.schema(columns))

    def made(name: str, **properties: str) -> pennon.namespace.PartitionedNamespace:
        table = pennon.create(tmp_path / name, rows.schema, ["r"], properties=properties)
        table.append(rows)
        return table

    def num_bytes(table: pennon.namespace.PartitionedNamespace) -> int:
        return sum(
            table.refresh().metadata("partitions")["total_data_file_size_in_bytes"].to_pylist()
        )

    plain, dense = made("plain"), made("dense", **{"write.compression": "lz4, price zstd"})
    before = num_bytes(plain)
    assert num_bytes(dense) < before / 2
    plain.set_properties({"write.compression": "price zstd"})
    assert plain.maintenance.compact().leaves == 0
    assert plain.maintenance.compact(strategy="all").leaves == 2
    assert num_bytes(plain) < before / 2
    assert plain.scan().to_arrow().sort_by("id").equals(rows)
    for refused in ("price snappy", "pric lz4"):
        with pytest.raises(TablePropertyRefused, match="names no codec, or no column"):
            plain.set_properties({"write.compression": refused})
