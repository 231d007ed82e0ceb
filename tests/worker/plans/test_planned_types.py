"""Queries that differ in the numbers of their columns alone are planned once."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from pennon.errors import FragmentFailed
from pennon.execution.engine import result_schema
from pennon.worker.plans import planned_types as module
from pennon.worker.plans.planned_types import planned_types

COLUMNS = pa.schema({"id": pa.int32(), "c1": pa.int64(), "c2": pa.utf8()})
SUMS = (
    "SELECT `c{0}` AS `c{2}`, sum(`c{1}`) AS `c{3}`"
    " FROM (SELECT `c2` AS `c{0}`, `c1` AS `c{1}` FROM `r0`) GROUP BY 1"
)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that DataFusion plans."""
    seen: list[str] = []

    def counted(
        relations: list[pa.Schema], sql: str, parts: list[pa.Schema], offsets: tuple[int, ...]
    ) -> pa.Schema:
        seen.append(sql)
        return result_schema(relations, sql, parts, offsets)

    module._kept.cache_clear()
    monkeypatch.setattr(module, "result_schema", counted)
    return seen


def test_a_query_asked_again_is_not_planned_again(planned: list[str]) -> None:
    part = [pa.schema({"c40": pa.int32()}), pa.schema({"c41": pa.int32()})]
    joined = "SELECT `c{0}` AS `c9` FROM `p0` JOIN `r0` ON `id` = `c{0}`"
    for numbers in ((10, 11, 12, 13), (20, 21, 22, 23), (13, 12, 11, 10)):
        types = planned_types([COLUMNS], SUMS.format(*numbers))
        assert types == (pa.utf8(), pa.int64())
    for number, schema in zip((40, 41), part, strict=True):
        assert planned_types([COLUMNS], joined.format(number), [schema]) == (pa.int32(),)
    assert len(planned) == 2


def test_queries_that_differ_in_more_are_planned_each(planned: list[str]) -> None:
    """Also where what differs is the number of a column that the table itself calls so."""
    other = COLUMNS.set(1, pa.field("c1", pa.float64()))
    queries = [
        ([COLUMNS], "SELECT `c1` AS `c10` FROM `r0`"),
        ([COLUMNS], "SELECT `c2` AS `c10` FROM `r0`"),
        ([other], "SELECT `c1` AS `c10` FROM `r0`"),
        ([COLUMNS], "SELECT `c1` AS `c10`, `c1` AS `c11` FROM `r0`"),
        ([COLUMNS], "SELECT `c1` AS `c10`, `c2` AS `c11` FROM `r0`"),
    ]
    found = [planned_types(schemas, sql) for schemas, sql in queries]
    assert found == [tuple(result_schema(schemas, sql).types) for schemas, sql in queries]
    assert len(planned) == len(queries)
    assert all(one != other for one, other in pairwise(found))


def test_a_refusal_names_the_query_s_own_columns(planned: list[str]) -> None:
    for number in (7, 8):
        with pytest.raises(FragmentFailed, match=f"c{number}"):
            planned_types([COLUMNS], f"SELECT `c{number}` AS `c9` FROM `r0`")
    assert len(planned) == 2
