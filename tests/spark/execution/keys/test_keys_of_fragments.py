"""Fragments that report their key: what Spark computes above them needs no shuffle by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
import pytest
from tests.spark.assert_join import EXECUTION, conf, shuffles_in
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("fragment_tables")

# Each ends in an operator that the workers decline, and that needs the key.
QUERIES = {
    "an aggregate of lists": (
        "SELECT x.id, sort_array(collect_list(y.v)) FROM x JOIN y ON x.id = y.id"
        " WHERE x.i > 0 GROUP BY x.id"
    ),
    "by the other side's key": (
        "SELECT y.id, sort_array(collect_set(x.s)) FROM x JOIN y ON x.id = y.id GROUP BY y.id"
    ),
    "of three tables": (
        "SELECT z.id, count(*), sort_array(collect_set(y.i)) FROM x JOIN y ON x.id = y.id"
        " JOIN z ON y.id = z.id WHERE y.i > 1 GROUP BY z.id"
    ),
    "of an evolved one": (
        "SELECT x.id, size(collect_list(old.v)) FROM x JOIN old ON x.id = old.id GROUP BY x.id"
    ),
    "of whole groups": (
        "SELECT id, sort_array(collect_list(n)) FROM (SELECT x.id, x.i, count(*) AS n FROM x"
        " JOIN y ON x.id = y.id GROUP BY x.id, x.i) GROUP BY id"
    ),
    "a join below, one above": (
        "SELECT a.id, z.v FROM (SELECT x.id, sort_array(collect_list(y.i)) AS l FROM x"
        " JOIN y ON x.id = y.id GROUP BY x.id) a JOIN z ON a.id = z.id WHERE size(a.l) > 1"
    ),
    "two fragments of one key": (
        "SELECT a.id, a.n, b.m FROM"
        " (SELECT x.id, sort_array(collect_list(y.i)) AS n FROM x JOIN y ON x.id = y.id"
        "  GROUP BY x.id) a JOIN"
        " (SELECT z.id, sort_array(collect_list(old.i)) AS m FROM z JOIN old ON z.id = old.id"
        "  GROUP BY z.id) b ON a.id = b.id"
    ),
    "an outer join": (
        "SELECT x.id, sort_array(collect_list(y.i)) FROM x LEFT JOIN y ON x.id = y.id"
        " AND y.v > 0 GROUP BY x.id"
    ),
    "a semi-join": (
        "SELECT x.id, sort_array(collect_list(x.i)) FROM x LEFT SEMI JOIN y ON x.id = y.id"
        " GROUP BY x.id"
    ),
    "a window above": (
        "SELECT x.id, x.i, y.v, size(collect_list(y.i) OVER (PARTITION BY x.id)) FROM x"
        " JOIN y ON x.id = y.id"
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_what_needs_the_key_is_not_shuffled(spark: SparkSession, name: str) -> None:
    plan = assert_same(spark, QUERIES[name])
    assert "with their key" in plan
    assert shuffles_in(plan) == 0


def test_a_union_keeps_the_key(spark: SparkSession) -> None:
    plan = assert_same(
        spark,
        "SELECT id, sort_array(collect_list(v)) FROM (SELECT x.id, y.v FROM x JOIN y"
        " ON x.id = y.id UNION ALL SELECT z.id, z.v FROM z JOIN y ON z.id = y.id) GROUP BY id",
    )
    keeps_keys = pyspark.__version__ >= "4.3"
    assert ("with their key" in plan, shuffles_in(plan) == 0) == (keeps_keys, keeps_keys)


STARS = {
    "by the key of the large table": (
        (
            "SELECT x.id, sort_array(collect_list(y.m)) FROM x JOIN (SELECT i, max(d) AS m FROM y"
            " GROUP BY i) y ON x.i = y.i GROUP BY x.id"
        ),
        "with their key",
        0,
    ),
    # Its rows lie as those of the star, whose key Spark computes of them.
    "a table without partitioning": (
        (
            "SELECT x.id, y.m, p.k FROM x"
            " JOIN (SELECT i, max(d) AS m FROM y GROUP BY i) y ON x.i = y.i"
            " JOIN (SELECT id % 40 AS k, count(*) FROM range(200) GROUP BY 1) p ON x.id = p.k"
        ),
        "with their key",
        2,
    ),
    "by the name that a dimension has for the key": (
        (
            "SELECT y.id, count(*), max(x.v) FROM x JOIN (SELECT DISTINCT id, i FROM y) y"
            " ON x.id = y.id AND x.i < y.i GROUP BY y.id"
        ),
        "fragment: complete",
        0,
    ),
}


@pytest.mark.parametrize("name", STARS)
def test_a_star_has_the_key_of_its_large_table(spark: SparkSession, name: str) -> None:
    query, fragment, shuffles = STARS[name]
    with conf(spark, {f"{EXECUTION}.replicatedBytes": "64m"}):
        plan = assert_same(spark, query)
    assert fragment in plan
    assert shuffles_in(plan) == shuffles


def test_groups_below_a_broadcast_are_whole(spark: SparkSession) -> None:
    plan = assert_same(
        spark, "SELECT z.id, z.s FROM z WHERE z.i NOT IN (SELECT max(i) FROM x GROUP BY id)"
    )
    assert "fragment: complete" in plan
    assert shuffles_in(plan) == 0
