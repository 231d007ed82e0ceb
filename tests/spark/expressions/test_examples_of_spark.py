"""Spark's own examples of its functions, varied: what workers compute of them is Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import ONE_TASK, conf
from tests.torture.examples.__main__ import run
from tests.torture_session import NOT_COMPILED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("part", "queries", "fewest"), [("", 240, 40), ("instr(", 60, 15)])
def test_variations_of_examples_give_the_values_and_errors_of_spark(
    spark: SparkSession, namespace: str, part: str, queries: int, fewest: int
) -> None:
    with conf(spark, {**NOT_COMPILED, **ONE_TASK}):
        tally = run(spark, f"{namespace}.examples", 41, queries, part=part)
    assert [str(difference) for difference in tally.shortest.values()] == []
    assert tally.compared >= fewest
