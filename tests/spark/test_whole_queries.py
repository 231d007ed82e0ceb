"""Random queries of several tables in the workers, beside plain Parquet: the torture in short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.torture.execution import StarSessions, make_star
from tests.torture.star_queries import TABLES, StarQueries


@pytest.fixture(scope="module")
def star(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StarSessions]:
    make_star(spark, tmp_path_factory.mktemp("star"))
    yield StarSessions(spark)
    for name in TABLES:
        spark.catalog.dropGlobalTempView(name)
    spark.sql("DROP NAMESPACE lance.star CASCADE")


@pytest.mark.parametrize("seed", range(300, 306))
def test_a_random_query_gives_the_same_rows(star: StarSessions, seed: int) -> None:
    sql = StarQueries(seed).query()
    differences, _ = star.differences(sql)
    assert differences == [], sql


def test_a_star_is_one_fragment(star: StarSessions) -> None:
    sql = (
        "SELECT r.s, count(*), sum(f.amt) FROM f JOIN c ON f.ck = c.ck JOIN r ON c.rk = r.rk"
        " JOIN p ON f.pk = p.pk WHERE p.q < 6 GROUP BY r.s HAVING count(*) > 3"
    )
    differences, plans = star.differences(sql)
    assert differences == []
    for plan in plans.values():
        assert plan.count("fragment: ") == 1
        assert "Join " not in plan.replace(" JOIN ", "")
    assert "Exchange" not in plans["one task"]
