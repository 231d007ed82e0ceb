"""Going back to an older version: what stays known of those between, and what expires beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest, make, regions, stage

import pennon
from pennon.errors import PennonError, SnapshotNotFound
from pennon.maintenance import expire as expire_module
from pennon.maintenance import rollback as rollback_module
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.rollback import rollback
from pennon.manifest.commits import root_change
from pennon.manifest.commits import root_change as stated_commit
from pennon.manifest.versions.tags import tags_of
from pennon.transaction import Committed, Conflicted, Transaction


@contextlib.contextmanager
def hidden_tags(location: str) -> Iterator[None]:
    """What an expiry sees that has listed the tags a moment before."""
    tags = Path(location, "__manifest", "_refs", "tags")
    aside = tags.with_name("aside")
    if not tags.exists():
        yield
        return
    tags.rename(aside)
    try:
        yield
    finally:
        aside.rename(tags)


def test_a_rollback_to_the_first_version_leaves_the_table_as_it_was_made(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu"})
    made = rollback(snapshot.location, 1)
    restored = pennon.open(snapshot.location, made)
    assert restored.scan().to_arrow().equals(pennon.open(snapshot.location, 1).scan().to_arrow())
    assert restored.spec == snapshot.current_spec
    assert regions(append(latest(snapshot), {2: "us"})) == {"us": [2]}


@pytest.mark.parametrize("moment", ["before the tag", "behind the tag", "behind the copy"])
@pytest.mark.parametrize("is_seen", [True, False], ids=["tag seen", "tag not seen"])
def test_a_rollback_beside_an_expiry_names_nothing_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, *, is_seen: bool
) -> None:
    wanted = append(make(tmp_path), {1: "eu"})
    append(append(wanted, {2: "eu"}), {3: "us"})
    location = wanted.location
    expirable, cleanup = expire_module.expirable_versions, lance.LanceDataset.cleanup_old_versions

    def hiding(real: Any) -> Any:
        def hidden(*arguments: Any, **named: Any) -> Any:
            with contextlib.nullcontext() if is_seen else hidden_tags(location):
                return real(*arguments, **named)

        return hidden

    monkeypatch.setattr(expire_module, "expirable_versions", hiding(expirable))
    monkeypatch.setattr(lance.LanceDataset, "cleanup_old_versions", hiding(cleanup))
    name = "set_tag" if moment.endswith("tag") else "copy_with_records"
    real = vars(rollback_module)[name]

    def interrupted(*arguments: Any, **named: Any) -> Any:
        made = None if moment.startswith("before") else real(*arguments, **named)
        expire_module.expire(location, older_than=datetime.now(UTC) + timedelta(minutes=1))
        return made if made is not None else real(*arguments, **named)

    monkeypatch.setattr(rollback_module, name, interrupted)
    expected: dict[str | None, list[int]] = {"eu": [1]}
    if moment == "before the tag":
        with pytest.raises(SnapshotNotFound):
            rollback(location, wanted.version)
        expected = {"eu": [1, 2], "us": [3]}
    else:
        rollback(location, wanted.version)
    assert regions(latest(wanted)) == expected
    assert check(location).is_valid
    assert not tags_of(lance.dataset(f"{location}/__manifest"))
    expire_module.expire(location, older_than=datetime.now(UTC) + timedelta(minutes=1))
    assert check(location).is_valid


def test_a_rollback_tells_its_own_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = append(make(tmp_path), {1: "eu"})
    append(wanted, {2: "eu"})
    restore = vars(rollback_module)["restore_version"]

    def followed(*arguments: Any) -> Any:
        made = restore(*arguments)
        append(latest(wanted), {3: "eu"})
        return made

    monkeypatch.setattr(rollback_module, "restore_version", followed)
    made = rollback(wanted.location, wanted.version)
    assert regions(wanted.at_version(made)) == {"eu": [1]}
    assert regions(latest(wanted)) == {"eu": [1, 3]}


@pytest.mark.parametrize("what", ["retried", "expired"])
def test_a_commit_that_a_rollback_met_is_recorded_once_or_has_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    wanted = append(make(tmp_path), {1: "eu"})
    newer = append(wanted, {2: "eu"})
    location = wanted.location
    met = Transaction(newer)
    met.append(stage(newer, {3: "eu"}))
    restore, add_records = (
        vars(rollback_module)[name] for name in ("restore_version", "add_records")
    )

    def beside(*arguments: Any) -> Any:
        assert isinstance(met.commit(), Committed)
        return restore(*arguments)

    def interrupted(*arguments: Any) -> None:
        if what == "expired":
            expire_module.expire(location, older_than=datetime.now(UTC) + timedelta(minutes=1))
        else:  # whoever has not heard of it asks again, before its record is back
            assert isinstance(met.commit(), Committed)
        add_records(*arguments)

    monkeypatch.setattr(rollback_module, "restore_version", beside)
    monkeypatch.setattr(rollback_module, "add_records", interrupted)
    made = rollback(location, wanted.version)
    assert regions(wanted.at_version(made)) == {"eu": [1]}
    assert regions(latest(wanted)) == {"eu": [1, 3] if what == "retried" else [1]}
    ids = lance.dataset(f"{location}/__manifest").to_table(["object_id"])["object_id"].to_pylist()
    assert len(ids) == len(set(ids))
    assert check(location).is_valid


def test_the_tag_of_a_rollback_that_was_killed_is_over_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = append(make(tmp_path), {1: "eu"})
    append(wanted, {2: "eu"})
    manifest = lance.dataset(f"{wanted.location}/__manifest")

    def killed(*_: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(type(manifest.tags), "replace_metadata", killed)
    with pytest.raises(SystemExit):
        rollback(wanted.location, wanted.version)
    (tag,) = tags_of(manifest).values()
    now = datetime.now(UTC)
    assert not tag.is_over(now + timedelta(hours=23))
    assert tag.is_over(now + timedelta(hours=25))
    assert regions(latest(wanted)) == {"eu": [1, 2]}


def test_the_id_of_a_column_that_was_rolled_back_is_not_given_again(tmp_path: Path) -> None:
    columns = pa.schema({"region": pa.utf8(), "amount": pa.int64()})
    sales = pennon.create(tmp_path / "sales", columns, ["region"])
    sales.append([{"region": "eu", "amount": 1}])
    before = sales.snapshot.version
    sales.add_column("discount", pa.int64())
    sales.append([{"region": "eu", "amount": 2, "discount": 50}])
    discount = sales.snapshot.schema.field_by_path(["discount"])

    sales.maintenance.rollback(before)
    sales.add_column("tax", pa.int64())
    sales.append([{"region": "eu", "amount": 3, "tax": 19}])

    tax = sales.snapshot.schema.field_by_path(["tax"])
    assert discount is not None
    assert tax is not None
    assert tax.id > discount.id
    rows = sales.scan(columns=["amount", "tax"]).to_arrow().sort_by("amount")
    assert rows.to_pylist() == [{"amount": 1, "tax": None}, {"amount": 3, "tax": 19}]


def test_the_id_of_a_column_that_comes_between_the_steps_of_a_rollback_is_not_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sales = pennon.create(tmp_path / "sales", pa.schema({"region": pa.utf8()}), ["region"])
    sales.append([{"region": "eu"}])
    before = sales.snapshot.version
    sales.append([{"region": "eu"}])
    copied = vars(rollback_module)["copy_with_records"]

    def interrupted(*arguments: Any) -> Any:
        made = copied(*arguments)
        pennon.open(tmp_path / "sales").add_column("discount", pa.int64())
        return made

    monkeypatch.setattr(rollback_module, "copy_with_records", interrupted)
    sales.maintenance.rollback(before)
    sales.add_column("tax", pa.int64())
    assert [field.id for field in sales.snapshot.schema.fields] == [0, 2]


@pytest.mark.parametrize("second", ["bucket(8, id)", "truncate(10, id)", None])
@pytest.mark.parametrize("has_expired", [False, True])
def test_rows_split_by_a_spec_that_was_rolled_back_are_not_taken_for_those_of_its_next_namesake(
    tmp_path: Path, second: str | None, *, has_expired: bool
) -> None:
    columns = pa.schema({"id": pa.int64(), "region": pa.utf8()})
    sales = pennon.create(tmp_path / "sales", columns, ["region"])
    before = sales.snapshot.version
    sales.add_partition_field("bucket(4, id)")
    base = sales.snapshot
    transaction = Transaction(base)
    transaction.append(stage(base, dict.fromkeys(range(20), "eu")))

    sales.maintenance.rollback(before)
    if second is not None:
        sales.add_partition_field(second)
        assert sales.snapshot.current_spec.spec_version == base.current_spec.spec_version
    if has_expired:
        sales.maintenance.expire_snapshots(datetime.now(UTC) + timedelta(minutes=1))

    assert isinstance(transaction.commit(), Conflicted)
    assert sales.scan().to_arrow().num_rows == 0


def test_a_column_that_is_added_beside_a_rollback_brings_no_other_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definition that was read before the rollback stands behind it."""
    base = make(tmp_path)
    names = pennon.open(base.location).schema.names
    pennon.open(base.location).add_column("x", pa.int32())
    made = stated_commit.commit_metadata

    def late(*args: Any, **named: Any) -> lance.LanceDataset:
        with monkeypatch.context() as free:
            free.setattr(root_change, "commit_metadata", made)
            if "x" in pennon.open(base.location).schema.names:
                rollback(base.location, base.version)
        return made(*args, **named)

    monkeypatch.setattr(root_change, "commit_metadata", late)
    with contextlib.suppress(PennonError):
        pennon.open(base.location).add_column("y", pa.int32())
    assert "x" not in pennon.open(base.location).schema.names
    assert set(pennon.open(base.location).schema.names) <= {*names, "y"}
