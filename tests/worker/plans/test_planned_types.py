"""A query that is asked again is not planned again."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.errors import FragmentFailed
from pennon.execution.engine import result_schema
from pennon.worker.plans import plan_outline as module
from pennon.worker.plans.plan_outline import planned_types

COLUMNS = pa.schema({"id": pa.int32(), "c1": pa.int64(), "c2": pa.utf8()})


def test_a_query_is_planned_once_for_each_of_its_relations() -> None:
    module._kept_schema.cache_clear()
    other = COLUMNS.set(1, pa.field("c1", pa.float64()))
    queries = [
        ((COLUMNS,), "SELECT `c1` AS `c10` FROM `r0`"),
        ((COLUMNS,), "SELECT `c2` AS `c10` FROM `r0`"),
        ((other,), "SELECT `c1` AS `c10` FROM `r0`"),
    ]
    for _ in range(2):
        found = [planned_types(schemas, sql) for schemas, sql in queries]
        assert found == [tuple(result_schema(schemas, sql).types) for schemas, sql in queries]
    kept = module._kept_schema.cache_info()
    assert (kept.misses, kept.hits) == (3, 3)


def test_long_queries_and_refusals_are_not_kept() -> None:
    module._kept_schema.cache_clear()
    members = ", ".join(map(str, range(20_000)))
    long = f"SELECT `c1` AS `c10` FROM `r0` WHERE `id` IN ({members})"
    assert planned_types((COLUMNS,), long) == (pa.int64(),)
    for _ in range(2):
        with pytest.raises(FragmentFailed, match="c7"):
            planned_types((COLUMNS,), "SELECT `c7` AS `c9` FROM `r0`")
    assert module._kept_schema.cache_info().currsize == 0
