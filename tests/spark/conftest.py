"""What the join tests share: rows without partitioning, and copies of them with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import WITHOUT_BROADCASTS, conf
from tests.spark.fragment_tables import made_fragment_tables
from tests.spark.join_sides import Sides, make_sides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def without_broadcasts(spark: SparkSession) -> Iterator[None]:
    """Join the small tables of a module's tests as large ones are joined.

    It is for tests of joins without a shuffle, of joins in workers, and of sorts below joins: a
    broadcast has neither. Every other test runs at Spark's defaults.
    """
    with conf(spark, WITHOUT_BROADCASTS):
        yield


@pytest.fixture(scope="module")
def sides(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, without_broadcasts: None
) -> Iterator[Sides]:
    yield make_sides(spark, tmp_path_factory.mktemp("plain"), "lance.joins")
    spark.sql("DROP NAMESPACE lance.joins CASCADE")


@pytest.fixture(scope="module")
def fragment_tables(spark: SparkSession, without_broadcasts: None) -> Iterator[None]:
    yield from made_fragment_tables(spark)
