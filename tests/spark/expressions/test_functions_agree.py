"""Spark's functions and Python's transforms on random values: the short form of a torture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import conf
from tests.torture.functions import KINDS, READ_AS_WRITTEN, disagreements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spec("Supported Transforms", "Hash Functions 6")
@pytest.mark.parametrize("kind", KINDS)
def test_spark_and_python_agree_on_random_values(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    spark.sql("SHOW NAMESPACES IN lance")
    with conf(spark, READ_AS_WRITTEN):
        differing, count = disagreements(spark, tmp_path, kind, rows=20_000, seed=1)
    assert differing == []
    assert count > 0
