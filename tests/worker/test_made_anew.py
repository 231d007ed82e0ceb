"""A path is no identity: tables dropped and made anew at one place, read by a worker that lives."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.manifest.handmade import SALES_EARLY, SALES_LATE, appendix_c
from tests.worker.worker_client import Driver, WorkerFailed, field, transform

import pennon

FIELDS = [field("id", "long"), field("region", "string")]
BY_REGION = [transform("identity", "region")]


def rows(ids: list[int], region: str) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "region": [region] * len(ids)})


def ids(driver: Driver, name: list[str]) -> list[int]:
    table = driver.ask("load_table", identifier=name)
    return sorted(driver.select(table)["id"].to_pylist())


def test_a_table_made_anew_at_a_path_takes_no_destinations_of_the_old_one(
    driver: Driver, tmp_path: Path
) -> None:
    name = [str(tmp_path / "orders")]
    for generation in (0, 10):
        table = driver.create(name, FIELDS, BY_REGION)
        for number in (1, 2, 3):
            driver.insert(table, rows([generation + number], "eu"))
            table = driver.ask("load_table", identifier=name)
        assert ids(driver, name) == [generation + 1, generation + 2, generation + 3]
        driver.ask("drop_table", identifier=name)


@pytest.mark.parametrize("count", [1, 1000])
def test_a_plain_dataset_written_anew_at_a_path_is_read_anew(
    driver: Driver, tmp_path: Path, count: int
) -> None:
    place = tmp_path / "plain.lance"
    for first in (0, 5000):
        shutil.rmtree(place, ignore_errors=True)
        numbers = range(first, first + count)
        written = lance.write_dataset(pa.table({"id": pa.array(numbers, pa.int64())}), str(place))
        assert written.version == 1
        assert ids(driver, [str(place)]) == list(numbers)


def test_an_empty_plain_dataset_written_anew_has_the_new_columns(
    driver: Driver, tmp_path: Path
) -> None:
    place = tmp_path / "plain.lance"
    for names in (["id"], ["id", "note"]):
        shutil.rmtree(place, ignore_errors=True)
        lance.write_dataset(pa.schema([(name, pa.int64()) for name in names]).empty_table(), place)
        table = driver.ask("load_table", identifier=[str(place)])
        assert [row["name"] for row in table["schema"]["fields"]] == names
        assert driver.scan(table)[1].num_rows == 1


def test_a_foreign_namespace_made_anew_with_equal_metadata_is_read_anew(
    driver: Driver, tmp_path: Path
) -> None:
    for generation in range(2):
        shutil.rmtree(tmp_path / "handmade", ignore_errors=True)
        made = appendix_c(tmp_path)
        found = ids(driver, [made.location])
        assert found == sorted(row["id"] for row in made.all_rows), generation


@pytest.mark.parametrize("leaf", [SALES_EARLY, SALES_LATE])
def test_rows_that_another_writer_adds_to_a_leaf_in_weak_mode_are_read_by_the_next_query(
    driver: Driver, tmp_path: Path, leaf: str
) -> None:
    made = appendix_c(tmp_path, with_read_version=False)
    before = ids(driver, [made.location])
    place = next((tmp_path / "handmade").glob(f"*{leaf}"))
    more = lance.dataset(str(place)).to_table().slice(0, 1)
    lance.write_dataset(more, str(place), mode="append")
    assert len(ids(driver, [made.location])) == len(before) + 1
    new = pa.table({"id": [900], "event_date": more["event_date"], "country": more["country"]})
    schema = lance.dataset(str(place)).schema
    shutil.rmtree(place)
    lance.write_dataset(new.cast(schema), str(place))
    lance.write_dataset(new.cast(schema), str(place), mode="append")
    found = ids(driver, [made.location])
    assert found.count(900) == 2


def test_a_task_that_meets_another_table_at_the_place_names_its_own(driver: Driver) -> None:
    orders = driver.create(["shop", "orders"], FIELDS, BY_REGION)
    others = driver.create(["shop", "others"], FIELDS, BY_REGION)
    write = driver.plan_append(orders)
    place, other = (json.loads(table["table"])["location"] for table in (orders, others))
    shutil.rmtree(place)
    shutil.copytree(other, place)
    with pytest.raises(
        WorkerFailed, match=r"\[TABLE_MADE_ANEW\] Cannot use table lance\.shop\.orders "
    ):
        driver.connection.upload(write, rows([1], "eu"))


@pytest.mark.parametrize("is_made_anew", [False, True], ids=["dropped", "made anew"])
@pytest.mark.parametrize("left", ["nothing", "leaves"])
def test_a_task_that_comes_after_a_drop_names_its_table(
    driver: Driver, left: str, *, is_made_anew: bool
) -> None:
    name = ["shop", "orders"]
    orders = driver.create(name, FIELDS, BY_REGION)
    driver.insert(orders, rows([1], "eu"))
    write = driver.plan_append(driver.ask("load_table", identifier=name))
    place = Path(json.loads(orders["table"])["location"])
    driver.ask("drop_table", identifier=name)
    if left == "leaves":  # as another task has written them behind the drop
        lance.write_dataset(rows([2], "eu"), place / "0a1b_v1$k$dataset")
    if is_made_anew:
        driver.create(name, FIELDS, BY_REGION)
    with pytest.raises(
        WorkerFailed, match=r"Cannot find table lance\.shop\.orders: it was dropped meanwhile"
    ) as failed:
        driver.connection.upload(write, rows([3], "eu"))
    assert failed.value.condition == "TABLE_NOT_FOUND"


@pytest.mark.parametrize("is_plain", [False, True], ids=["partitioned", "plain"])
def test_a_table_dropped_before_its_tasks_read_is_named_by_them(
    driver: Driver, tmp_path: Path, *, is_plain: bool
) -> None:
    name = [str(tmp_path / "orders")]
    if is_plain:
        lance.write_dataset(rows([1, 2], "eu"), name[0])
    else:
        driver.insert(driver.create(name, FIELDS, BY_REGION), rows([1, 2], "eu"))
    plan, splits = driver.scan(driver.ask("load_table", identifier=name))
    shutil.rmtree(name[0])
    with pytest.raises(WorkerFailed, match="orders: it was dropped or replaced while it was read"):
        driver.connection.rows(plan["scan"], splits["split"][0].as_py())


@pytest.mark.parametrize("is_made_anew", [False, True], ids=["dropped", "made anew"])
def test_a_stream_tells_a_table_made_anew_from_a_dropped_one(
    driver: Driver, *, is_made_anew: bool
) -> None:
    name = ["shop", "my orders"]
    orders = driver.create(name, FIELDS, BY_REGION)
    asked = {"table": orders["table"], "options": {}, "time_zone": "UTC"}
    start = driver.ask("start_stream", **asked)["position"]
    driver.ask("drop_table", identifier=name)
    if is_made_anew:
        driver.create(name, FIELDS, BY_REGION)
    with pytest.raises(WorkerFailed, match=r"table lance\.shop\.`my orders`") as failed:
        driver.ask("find_batch_end", **asked, start=start, until=None, takes_all=False)
    assert failed.value.condition == ("TABLE_MADE_ANEW" if is_made_anew else "TABLE_NOT_FOUND")


def test_a_version_of_a_table_that_was_dropped_says_so(driver: Driver, tmp_path: Path) -> None:
    name = [str(tmp_path / "orders")]
    driver.insert(driver.create(name, FIELDS, BY_REGION), rows([1, 2], "eu"))
    table = driver.ask("load_table", identifier=name, version="3")
    shutil.rmtree(name[0])
    with pytest.raises(WorkerFailed, match="orders: it was dropped meanwhile") as failed:
        driver.scan(table)
    assert failed.value.condition == "TABLE_NOT_FOUND"


def test_a_version_that_expires_before_its_tasks_read_is_told_from_lost_files(
    driver: Driver, tmp_path: Path
) -> None:
    name = [str(tmp_path / "orders")]
    orders = driver.create(name, FIELDS, BY_REGION)
    driver.insert(orders, rows([1], "eu"))
    plan, splits = driver.scan(driver.ask("load_table", identifier=name))
    pennon.open(name[0]).delete("id = 1")
    pennon.open(name[0]).maintenance.expire_snapshots(datetime.now(UTC), 1)
    with pytest.raises(WorkerFailed, match="SNAPSHOT_EXPIRED.*Run the query again"):
        driver.connection.rows(plan["scan"], splits["split"][0].as_py())
    driver.insert(driver.ask("load_table", identifier=name), rows([2], "us"))
    plan, splits = driver.scan(driver.ask("load_table", identifier=name))
    for leaf in (tmp_path / "orders").glob("*$dataset"):
        shutil.rmtree(leaf)
    with pytest.raises(WorkerFailed, match="LEAF_MISSING"):
        driver.connection.rows(plan["scan"], splits["split"][0].as_py())
