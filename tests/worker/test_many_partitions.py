"""Planning a join of two tables of 100,000 partitions: the shape of what goes over the socket."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from tests.manifest.many_partitions import add_partitions
from tests.worker.worker_client import (
    DERIVATION,
    IN_SPARK,
    Driver,
    field,
    joined,
    scanned,
    transform,
)

COUNT = 100_000
FIELDS = [field("k", "long"), field("v", "double")]


@pytest.mark.parametrize("execution", ["spark", "worker"])
def test_two_tables_of_many_small_partitions_become_few_tasks(
    driver: Driver, execution: str
) -> None:
    nodes = []
    for at, name in enumerate("lr"):
        driver.create(["shop", name], FIELDS, [transform("identity", "k")])
        add_partitions(next(Path(str(driver.catalog["root"])).glob(f"*_shop${name}")), COUNT)
        plan, splits = driver.scan(driver.ask("load_table", identifier=["shop", name]))
        assert splits.num_rows == COUNT
        columns = scanned({10 * at + 1: "k", 10 * at + 2: "v"})
        scan = {"catalog": driver.catalog, "plan": plan["plan"], "columns": columns, "table": name}
        nodes.append({"node": "scan", **scan})
    nodes.append(joined(0, 1, "full"))
    options = {**DERIVATION, **({"settings": IN_SPARK} if execution == "spark" else {})}
    reply = driver.connection.request("derive_keys", nodes=nodes, **options)
    assigned = driver.connection.arrow()
    tasks = pc.count_distinct(assigned["key"]).as_py()
    assert tasks == 2 * COUNT // 2_000
    if execution == "spark":
        assert reply["served"] == [2]
        assert reply["scans"]["0"] == f"k as one key ({COUNT} groups in {tasks} tasks)"
        assert assigned.num_rows == 2 * COUNT
        for at in (0, 1):
            keys = assigned.filter(pc.equal(assigned["scan"], at))["key"].to_pylist()
            assert keys == sorted(keys)
    else:
        assert [row["root"] for row in reply["fragments"]] == [2]
        assert assigned.num_rows == tasks
