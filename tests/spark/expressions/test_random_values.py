"""All that workers compute of one row, over random and edge values: Spark's own, or its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.expressions.random_rows import SESSIONS, compared_with_spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("ansi", "zone"), SESSIONS)
def test_random_values_give_the_values_and_errors_of_spark(
    spark: SparkSession, tmp_path: Path, *, ansi: bool, zone: str
) -> None:
    compared = compared_with_spark(spark, tmp_path, (41, 200), ansi=ansi, zone=zone)
    assert compared.different == {}
