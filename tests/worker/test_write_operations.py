"""Overwrites, deletes and staged tables over the socket, with another writer in between."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest
from tests.worker.worker_client import Driver, WorkerFailed, field, transform

import pennon

FIELDS = [field("id", "long"), field("region", "string")]
BY_REGION = [transform("identity", "region")]


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([number for number, _ in pairs], pa.int64()),
            "region": pa.array([region for _, region in pairs], pa.utf8()),
        }
    )


@pytest.fixture
def table(driver: Driver) -> dict:
    made = driver.create(["shop", "orders"], FIELDS, BY_REGION)
    driver.insert(made, rows((1, "eu"), (2, "us")))
    return latest(driver)


def latest(driver: Driver) -> dict:
    return driver.ask("load_table", identifier=["shop", "orders"])


def regions(driver: Driver) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in driver.select(latest(driver)).to_pylist():
        found.setdefault(row["region"], []).append(row["id"])
    return {region: sorted(ids) for region, ids in found.items()}


def overwrite(driver: Driver, table: dict, new: pa.Table, **mode: object) -> dict:
    """Plan and write; the commit is the caller's."""
    planned = driver.ask(
        "plan_write", table=table["table"], schema=table["schema"], query_id="q", **mode
    )
    staged = driver.connection.upload(planned["write"], new)["staged"]
    return {"write": planned["write"], "staged": staged}


EVERY_MODE = pytest.mark.parametrize(
    "mode",
    [
        {"mode": "overwrite"},
        {"mode": "overwrite", "predicates": ["`region` = 'eu'"]},
        {"mode": "overwrite_partitions"},
    ],
    ids=["whole", "condition", "dynamic"],
)


@EVERY_MODE
def test_an_append_to_a_replaced_partition_is_a_conflict_that_names_it(
    driver: Driver, table: dict, mode: dict
) -> None:
    mine = overwrite(driver, table, rows((9, "eu")), **mode)
    driver.insert(table, rows((3, "eu")))
    with pytest.raises(WorkerFailed, match="partition region=eu") as caught:
        driver.ask("commit_write", **mine)
    assert caught.value.condition == "WRITE_CONFLICT"
    driver.ask("abort_write", **mine)
    assert regions(driver) == {"eu": [1, 3], "us": [2]}


@EVERY_MODE
def test_an_append_to_a_new_partition_comes_after_the_overwrite(
    driver: Driver, table: dict, mode: dict
) -> None:
    mine = overwrite(driver, table, rows((9, "eu")), **mode)
    driver.insert(table, rows((3, "asia")))
    driver.ask("commit_write", **mine)
    kept = {} if mode == {"mode": "overwrite"} else {"us": [2]}
    assert regions(driver) == {"eu": [9], "asia": [3], **kept}


def test_a_delete_of_what_another_appended_to_is_a_conflict(driver: Driver, table: dict) -> None:
    request = {"table": table["table"], "predicates": ["`region` = 'us'"]}
    assert driver.ask("check_delete", **request) == {"possible": True}
    driver.insert(table, rows((3, "us")))
    with pytest.raises(WorkerFailed, match="partition region=us"):
        driver.ask("delete_rows", **request)
    request["table"] = latest(driver)["table"]
    assert driver.ask("delete_rows", **request)["snapshot"] > 0
    assert regions(driver) == {"eu": [1]}


def test_an_unknown_mode_is_refused(driver: Driver, table: dict) -> None:
    with pytest.raises(WorkerFailed, match="'upsert' is no mode of a write"):
        overwrite(driver, table, rows(), mode="upsert")


def test_a_staged_table_has_no_name_until_it_is_published(driver: Driver) -> None:
    more = {"schema": {"type": "struct", "fields": FIELDS}, "partitioning": BY_REGION}
    name = ["shop", "orders"]
    staged = driver.ask("stage_table", identifier=name, mode="create", **more)
    driver.insert(staged, rows((1, "eu")))
    assert driver.ask("list_tables", namespace=["shop"]) == {"tables": []}
    driver.ask("publish_table", identifier=name, table=staged["table"], mode="create", reads=[])
    assert regions(driver) == {"eu": [1]}
    with pytest.raises(WorkerFailed, match="TABLE_ALREADY_EXISTS"):
        driver.ask("stage_table", identifier=name, mode="create", **more)
    new = driver.ask("stage_table", identifier=name, mode="replace", **more)
    driver.insert(new, rows((2, "us")))
    assert regions(driver) == {"eu": [1]}
    driver.ask("publish_table", identifier=name, table=new["table"], mode="replace", reads=[])
    assert regions(driver) == {"us": [2]}
    other = driver.ask("stage_table", identifier=name, mode="create_or_replace", **more)
    driver.ask("discard_table", identifier=name, table=other["table"])
    assert regions(driver) == {"us": [2]}
    assert latest(driver)["version"] != other["version"]


def test_procedures_are_listed_with_their_parameters(driver: Driver) -> None:
    every = driver.ask("list_procedures", name=None)["procedures"]
    listed = {row["name"]: row for row in every}
    assert listed["check"]["parameters"][0] == {"name": "table", "type": "string", "required": True}
    assert driver.ask("list_procedures", name="Check")["procedures"] == [listed["check"]]


def test_a_procedure_that_is_looked_up_is_not_called(driver: Driver) -> None:
    with pytest.raises(WorkerFailed, match="chek.*check, ") as failed:
        driver.ask("list_procedures", name="chek")
    assert failed.value.condition == "UNKNOWN_PROCEDURE"


def test_a_batch_of_a_stream_is_planned_where_the_streams_own_version_has_expired(
    driver: Driver, table: dict
) -> None:
    token = json.loads(table["table"])
    other = pennon.open(token["location"])
    started_on = other.append(rows((3, "eu")))  # which this worker never opened
    other.append(rows((4, "us")))
    other.maintenance.expire_snapshots(dt.datetime.now(dt.UTC) + dt.timedelta(1), retain_last=1)
    started = json.dumps({**token, "version": started_on})
    asked = {"table": started, "schema": table["schema"], "query_id": "stream"}
    with pytest.raises(WorkerFailed):
        driver.ask("plan_write", **asked)
    planned = driver.ask("plan_write", **asked, is_stream=True)
    staged = driver.connection.upload(planned["write"], rows((5, "eu")))["staged"]
    driver.ask("commit_write", write=planned["write"], staged=staged)
    assert regions(driver) == {"eu": [1, 3, 5], "us": [2, 4]}
