"""Which partitions the condition of a procedure chooses."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from tests.transaction.lake import append, make

import pennon
from pennon.errors import PredicateNotEvaluable
from pennon.maintenance.compact import compact
from pennon.maintenance.rewrite_partitions import rewrite_partitions
from pennon.maintenance.statistics.analyze import analyze
from pennon.manifest import Snapshot


@pytest.mark.parametrize(
    "where",
    [
        "region",
        "id",
        "1",
        "nope(region) = 1",
        "sum(id) > 1",
        "rand() < 0.5",
        "id = (SELECT 1)",
        "region IN (SELECT 'eu')",
        "region = 'eu' AND nope(id) = 1",
    ],
)
def test_what_is_no_condition_on_rows_chooses_no_partition(tmp_path: Path, where: str) -> None:
    snapshot = make(tmp_path)
    for number in range(2):
        snapshot = append(snapshot, {number: "eu"})
    version = pennon.open(snapshot.location).add_partition_field("bucket(2, id)")
    for run in (compact, rewrite_partitions, analyze):
        with pytest.raises(PredicateNotEvaluable):
            run(snapshot.location, where=where)
    assert Snapshot.open(snapshot.location).version == version


def test_a_condition_that_partition_values_decide_chooses_by_any_function(tmp_path: Path) -> None:
    schema = pa.schema({"t": pa.timestamp("us")})
    table = pennon.create(str(tmp_path / "days"), schema, ["days(t)"])
    for month in (1, 2, 1, 2):
        table.append(pa.table({"t": [datetime(2024, month, 3)]}, schema))  # noqa: DTZ001
    done = compact(table.location, where="date_format(t, 'yyyy-MM') = '2024-02'", dry_run=True)
    assert (done.leaves, done.num_rows) == (1, 2)
