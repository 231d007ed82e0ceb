"""What the join tests share: rows without partitioning, and copies of them with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.joins.join_sides import Sides, make_sides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def sides(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, without_broadcasts: None
) -> Iterator[Sides]:
    yield make_sides(spark, tmp_path_factory.mktemp("plain"), "lance.joins")
    spark.sql("DROP NAMESPACE lance.joins CASCADE")
