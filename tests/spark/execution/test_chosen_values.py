"""Aggregates that choose by an order, or compare values in pairs, in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
import pytest
from tests.spark.assert_join import ONE_TASK, conf
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of rows that tie, Spark chooses any: the orders of these have no ties, or the values none.
BESIDE_EXTREMES = [
    "SELECT i, max_by(s, n), min_by(s, n), max(n) FROM {x} GROUP BY i",
    "SELECT i, max_by(n, -n), min_by(v, n), max_by(f, n), min_by(dec, n) FROM {x} GROUP BY i",
    "SELECT i, max_by(f IS NULL, f), min_by(f + 0, f), max_by(isnan(f), f) FROM {x} GROUP BY i",
    "SELECT id, max_by(s, n), min_by(d, n), max_by(ts, n), min_by(flag, n) FROM {x} GROUP BY id",
    "SELECT i, max_by(s, n) FILTER (WHERE flag) FROM {x} GROUP BY i",
    "SELECT i, min_by(s, n) FILTER (WHERE n < 0) FROM {x} GROUP BY i",
    "SELECT max_by(s, n), min_by(n, v * 1000 + n) FROM {x}",
    "SELECT max_by(s, n), count(*) FROM {x} WHERE n < 0",
    "SELECT i, max_by(s, IF(i = 1, NULL, n)), min_by(s, IF(i < 3, NULL, n)) FROM {x} GROUP BY i",
    "SELECT i, flag, max_by(n, n), min_by(s, n) FROM {x} GROUP BY CUBE(i, flag)",
    "SELECT top, count(*) FROM (SELECT i, max_by(s, n) AS top FROM {x} GROUP BY i) GROUP BY top",
    "SELECT i, m FROM y JOIN (SELECT id, max_by(n, n) AS m FROM {x} GROUP BY id) USING (id)",
]
OF_WHOLE_GROUPS = [
    "SELECT id, median(i16), percentile(v, 0.3), percentile(f + 0, 0.5) FROM {x} GROUP BY id",
    "SELECT i, percentile_cont(0.25) WITHIN GROUP (ORDER BY n) AS q, median(n) FROM {x} GROUP BY i",
    "SELECT i, percentile_cont(0.9) WITHIN GROUP (ORDER BY dec DESC), count(*) FROM {x} GROUP BY i",
    "SELECT i, median(n) FILTER (WHERE flag), median(v) FILTER (WHERE n < 0) FROM {x} GROUP BY i",
    "SELECT median(n), percentile(v, 0), percentile(v, 1), median(dec), max(n) FROM {x}",
    "SELECT median(v), corr(v, n), covar_pop(v, n), covar_samp(v, n) FROM {x} WHERE n < 0",
    "SELECT id, round(corr(v, i16), 6), round(covar_pop(v, i16), 6) FROM {x} GROUP BY id",
    "SELECT i, round(covar_samp(v, dec), 4), round(corr(dec, n), 6) FROM {x} GROUP BY i",
    pytest.param(
        "SELECT i, corr(v, 1), corr(f, v), corr(f, 2), corr(IF(flag, f, 7), i) FROM {x} GROUP BY i",
        marks=pytest.mark.skipif(pyspark.__version__ < "4.3", reason="a division by zero there"),
    ),
    "SELECT n, corr(v, i16), covar_pop(v, f), covar_samp(v, i16), median(f) FROM {x} GROUP BY n",
    "SELECT i, flag, median(n), round(corr(n, v), 6) FROM {x} GROUP BY CUBE(i, flag)",
    "SELECT i, round(corr(v, i16) FILTER (WHERE flag), 6), covar_pop(f, 2) FROM {x} GROUP BY i",
]
LEFT_TO_SPARK = [
    "SELECT i, percentile(n, array(0.25, 0.75)) FROM {x} GROUP BY i",
    "SELECT i, percentile(n, 0.5, i16) FROM {x} GROUP BY i",
    "SELECT i, percentile_disc(0.5) WITHIN GROUP (ORDER BY n), mode(i16) FROM {x} GROUP BY i",
    "SELECT i, max_by(s, struct(n, i16)) FROM {x} GROUP BY i",
    pytest.param(
        "SELECT i, max_by(s, n, 2) FROM {x} GROUP BY i",
        marks=pytest.mark.skipif(pyspark.__version__ < "4.2", reason="takes two arguments there"),
    ),
    "SELECT i, min(CASE WHEN flag THEN struct(id, n) END) FROM {x} GROUP BY i",
    "SELECT max(IF(i16 > 3, struct(v, s), NULL)), max(struct(i, s)) FROM {x}",
    "SELECT i, max_by(10 DIV i16, n) FROM {x} WHERE i16 <> 0 GROUP BY i",
]
NUMBERED = "(SELECT *, unix_micros(ts) + i16 * 7 + coalesce(id, 99) * 1000 AS n FROM x)"

pytestmark = pytest.mark.usefixtures("fragment_tables")


@pytest.mark.parametrize("query", BESIDE_EXTREMES)
def test_values_beside_extremes_are_those_of_spark(spark: SparkSession, query: str) -> None:
    sql = query.format(x=NUMBERED)
    assert spark.sql(f"SELECT count(DISTINCT n) = count(*) FROM {NUMBERED}").first() == (True,)
    for settings in ({}, ONE_TASK):
        with conf(spark, settings):
            assert_same(spark, sql)


@pytest.mark.parametrize("query", OF_WHOLE_GROUPS)
def test_percentiles_and_correlations_are_of_whole_groups(spark: SparkSession, query: str) -> None:
    sql = query.format(x=NUMBERED)
    is_known = "corr(" not in sql or pyspark.__version__ >= "4.3"
    assert_same(spark, sql, is_fragment=is_known and "GROUP BY id" in sql)
    with conf(spark, ONE_TASK):
        assert_same(spark, sql, is_fragment=is_known)


@pytest.mark.parametrize("query", LEFT_TO_SPARK)
def test_what_is_not_known_stays_in_spark(spark: SparkSession, query: str) -> None:
    with conf(spark, ONE_TASK):
        assert_same(spark, query.format(x=NUMBERED), is_fragment=False)
