"""Transactions become strong or weak: no acknowledged row is lost, whoever writes meanwhile."""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest, make, regions, stage
from tests.transaction.test_row_changes import change

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.cli.command_line import main
from pennon.errors import (
    PennonError,
    ProcedureArgument,
    RollbackRefused,
    TransactionModeChanged,
    UnsupportedTableChange,
)
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.expire import expire
from pennon.maintenance.procedures import call
from pennon.maintenance.vacuum import vacuum
from pennon.manifest.format import properties as change_notice
from pennon.manifest.format import properties as running_process
from pennon.manifest.table_identity import change_under_way, mode_of
from pennon.manifest.versions.history import history
from pennon.transaction import Committed, Transaction, mode_change, strong, weak
from pennon.transaction.mode_change import set_transaction_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from pennon.manifest import Snapshot

OTHER = {"strong": "weak", "weak": "strong"}
STEPS = {
    strong: ("_opened", "leaf_states", "prepare_leaves", "commit_leaves"),
    weak: ("_newest", "_registered", "_opened", "_apply", "create_leaf", "commit_leaves"),
    mode_change: (
        "begin_change",
        "opened_in_change",
        "publish",
        "fence",
        "add_read_versions",
        "forget_read_versions",
        "commit_leaves",
        "end_change",
    ),
}


@contextmanager
def before_step(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, number: int, action: Callable[[], object]
) -> Iterator[list[str]]:
    """Run an action before a step of a module; gives the steps that were taken."""
    taken: list[str] = []

    def step(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
        def taking(*arguments: Any, **named: Any) -> Any:
            taken.append(name)
            if len(taken) - 1 == number:
                action()
            return made(*arguments, **named)

        return taking

    with monkeypatch.context() as patched:
        for name in STEPS[module]:
            patched.setattr(module, name, step(name, getattr(module, name)))
        yield taken


def filled(tmp_path: Path, mode: str) -> Snapshot:
    """Three partitions, one of NULL, with a deleted row each way that there is."""
    base = append(make(tmp_path, strong=mode == "strong"), {1: "eu", 2: "us", 3: None, 4: "eu"})
    assert isinstance(change(base, {4}).commit(), Committed)
    return append(latest(base), {5: "us"})


def on_main(snapshot: Snapshot) -> set[int]:
    """The rows that Lance finds on the main branches, without the manifest's versions."""
    places = snapshot.leaves().table["location"].to_pylist()
    tables = [lance.dataset(f"{snapshot.location}/{place}").to_table() for place in places]
    return {id_ for table in tables for id_ in table["id"].to_pylist()}


@pytest.mark.parametrize("mode", ["strong", "weak"])
def test_rows_stay_and_are_written_on_in_the_new_mode(tmp_path: Path, mode: str) -> None:
    base = filled(tmp_path, mode)
    rows = {"eu": [1], "us": [2, 5], None: [3]}
    done = set_transaction_mode(base.location, OTHER[mode])
    assert (done.leaves, done.notes) == (3, [])
    after = latest(base)
    assert done.version == after.version
    assert (mode_of(after), regions(after)) == (OTHER[mode], rows)
    assert on_main(after) == {1, 2, 3, 5}
    assert check(base.location).is_valid

    after = append(after, {6: "eu", 7: "asia"})
    assert isinstance(change(after, {2}, {8: "eu"}).commit(), Committed)
    after = latest(base)
    assert regions(after) == {"eu": [1, 6, 8], "us": [5], None: [3], "asia": [7]}
    is_weak = OTHER[mode] == "weak"
    assert on_main(after) == ({1, 3, 5, 6, 7, 8} if is_weak else {1, 2, 3, 5})
    told = [entry.operation for entry in history(base.location, after=base.version)]
    altered = ["alter"] * (3 if mode == "strong" else 4)
    assert told == [*altered, *(["write"] if is_weak else ["append", "overwrite"])]
    assert check(base.location).is_valid


@pytest.mark.parametrize("mode", ["strong", "weak"])
def test_there_and_back_any_number_of_times(tmp_path: Path, mode: str) -> None:
    base = filled(tmp_path, mode)
    expected = {"eu": [1], "us": [2, 5], None: [3]}
    for number in range(10, 16):
        mode = OTHER[mode]
        set_transaction_mode(base.location, mode)
        after = append(latest(base), {number: "eu"})
        expected["eu"].append(number)
        assert regions(after) == expected
    assert set_transaction_mode(base.location, mode).notes == [
        f"its transactions are {mode} already"
    ]
    later = datetime.now(UTC) + timedelta(minutes=1)
    expire(base.location, older_than=later)
    vacuum(base.location, older_than=later)
    assert regions(latest(base)) == expected
    assert check(base.location).is_valid


def test_versions_of_the_time_before_have_their_rows(tmp_path: Path) -> None:
    base = filled(tmp_path, "strong")
    set_transaction_mode(base.location, "weak")
    append(latest(base), {9: "eu"})
    table = pennon.open(base.location, version=base.version)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 5]


@pytest.mark.parametrize("mode", ["strong", "weak"])
def test_a_writer_whose_table_changes_its_mode_at_any_step_is_refused_or_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    module = strong if mode == "strong" else weak
    for number in range(100):
        base = filled(tmp_path / str(number), mode)
        transaction = Transaction(base)
        transaction.append(stage(base, {6: "eu"}))
        is_seen = False
        with before_step(
            monkeypatch,
            module,
            number,
            partial(set_transaction_mode, base.location, OTHER[mode]),
        ) as taken:
            try:
                is_seen = isinstance(transaction.commit(), Committed)
            except TransactionModeChanged:
                is_seen = False
        if len(taken) <= number:
            assert is_seen
            assert number >= len(STEPS[module]) - 2
            return
        after = latest(base)
        assert mode_of(after) == OTHER[mode]
        assert regions(after)["eu"] == ([1, 6] if is_seen else [1])
        again = Transaction(after)
        again.append(stage(after, {7: "eu"}))
        assert isinstance(again.commit(), Committed)
        assert regions(latest(base))["eu"] == ([1, 6, 7] if is_seen else [1, 7])


@pytest.mark.parametrize("region", ["eu", "new"])
@pytest.mark.parametrize("mode", ["strong", "weak"])
def test_what_was_written_before_any_step_of_the_change_is_there_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, region: str
) -> None:
    for number in range(100):
        base = filled(tmp_path / str(number), mode)
        seen: list[bool] = []

        def write(base: Snapshot = base, seen: list[bool] = seen) -> None:
            transaction = Transaction(base)
            transaction.append(stage(base, {6: region}))
            try:
                seen.append(isinstance(transaction.commit(), Committed))
            except TransactionModeChanged:
                seen.append(False)

        with before_step(monkeypatch, mode_change, number, write) as taken:
            set_transaction_mode(base.location, OTHER[mode])
        if len(taken) <= number:
            assert number > 5
            return
        after = latest(base)
        rows = [*([1] if region == "eu" else []), *([6] if seen[0] else [])]
        assert mode_of(after) == OTHER[mode]
        assert regions(after).get(region, []) == rows
        assert check(base.location).is_valid


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("mode", ["strong", "weak"])
def test_a_killed_change_leaves_a_table_that_is_read_and_the_next_one_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, *, back: bool
) -> None:
    rows = {"eu": [1], "us": [2, 5], None: [3]}

    def die() -> None:
        raise KeyboardInterrupt

    for number in range(100):
        base = filled(tmp_path / str(number), mode)
        with before_step(monkeypatch, mode_change, number, die) as taken:
            try:
                set_transaction_mode(base.location, OTHER[mode])
            except KeyboardInterrupt:
                pass
            else:
                assert len(taken) <= number
                return
        assert regions(latest(base)) == rows
        assert pennon.open(base.location).scan().count_rows() == 4
        assert check(base.location).is_valid
        if mode_of(latest(base)) is None:
            with pytest.raises(TransactionModeChanged, match="set_transaction_mode"):
                pennon.open(base.location).append([{"id": 9, "region": "eu"}])
        wanted = mode if back else OTHER[mode]
        set_transaction_mode(base.location, wanted)
        after = append(latest(base), {9: "eu"})
        assert (mode_of(after), regions(after)) == (wanted, {**rows, "eu": [1, 9]})


def test_a_change_that_another_one_takes_over_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 100):
        base = filled(tmp_path / str(number), "strong")
        with before_step(
            monkeypatch,
            mode_change,
            number,
            partial(set_transaction_mode, base.location, "strong"),
        ) as taken:
            try:
                set_transaction_mode(base.location, "weak")
            except TransactionModeChanged as error:
                why = error.message
            else:
                assert len(taken) <= number
                return
        assert "another process" in why
        assert None not in latest(base).leaves().table["read_version"].to_pylist()
        after = append(latest(base), {9: "eu"})
        assert (mode_of(after), regions(after)["eu"]) == ("strong", [1, 9])


def test_a_change_that_takes_longer_than_its_notice_lasts_is_not_turned_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer on another machine cannot see that its process lives."""
    base = filled(tmp_path / "t", "strong")
    monkeypatch.setattr(running_process, "_machine", lambda: secrets.token_hex(8))
    monkeypatch.setattr(change_notice, "_OF_MODES_SECONDS", 2)

    def write_late() -> None:
        begun = change_under_way(latest(base))
        assert begun is not None
        assert begun.until is not None
        while time.time() * 1000 < begun.until + 500:
            time.sleep(0.1)
        with pytest.raises(TransactionModeChanged, match="are being made weak"):
            pennon.open(base.location).append([{"id": 9, "region": "eu"}])

    with before_step(monkeypatch, mode_change, 5, write_late) as taken:
        set_transaction_mode(base.location, "weak")
    assert len(taken) > 5
    assert mode_of(latest(base)) == "weak"
    assert regions(latest(base)) == {"eu": [1], "us": [2, 5], None: [3]}


def test_adopted_datasets_are_read_at_their_newest_in_a_table_that_became_weak(
    tmp_path: Path,
) -> None:
    base = filled(tmp_path, "strong")
    set_transaction_mode(base.location, "weak")
    path = f"{base.location}/old.lance"
    rows = pa.table({"id": pa.array([20], pa.int64()), "region": ["asia"]})
    lance.write_dataset(rows, path)
    adopted = {"table": base.location, "path": path}
    call(Catalog("lance", str(tmp_path)), "adopt", adopted)
    assert latest(base).leaves().table.filter(
        pa.compute.equal(latest(base).leaves().table["partition_field_region"], "asia")
    )["read_version"].to_pylist() == [None]


def test_nothing_is_rolled_back_where_a_version_does_not_name_its_rows(tmp_path: Path) -> None:
    base = filled(tmp_path, "weak")
    table = pennon.open(base.location)
    with pytest.raises(RollbackRefused, match="are weak"):
        table.maintenance.rollback(base.version - 1)
    table.maintenance.set_transaction_mode("strong")
    with pytest.raises(RollbackRefused, match="were weak then"):
        table.maintenance.rollback(base.version - 1)
    made = table.version
    table.append([{"id": 9, "region": "eu"}])
    table.maintenance.rollback(made)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 5]
    table.maintenance.set_transaction_mode("weak")
    with pytest.raises(RollbackRefused, match=f"VERSION AS OF {made}"):
        table.maintenance.rollback(made)


def test_the_procedure_and_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = filled(tmp_path, "strong")
    catalog = Catalog("lance", str(tmp_path))
    asked = {"table": base.location, "mode": "WEAK"}
    rows = call(catalog, "set_transaction_mode", asked).rows
    assert rows == (("weak", latest(base).version, 3, ""),)
    assert main(["set-transaction-mode", base.location, "strong"]) == 0
    assert "with strong transactions" in capsys.readouterr().out
    with pytest.raises(ProcedureArgument, match="strong, weak"):
        call(catalog, "set_transaction_mode", {"table": base.location, "mode": "none"})
    with pytest.raises(UnsupportedTableChange, match="set_transaction_mode"):
        pennon.open(base.location).set_properties({"transaction": "weak"})
    with pytest.raises(PennonError):
        call(catalog, "set_transaction_mode", {"table": str(tmp_path / "no"), "mode": "weak"})
