"""What the rooms of Spark tests share: a session that does not broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import WITHOUT_BROADCASTS, conf

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
