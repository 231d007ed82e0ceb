"""What statements give, in forms that tests compare."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def counted_rows(frame: DataFrame) -> Counter[str]:
    """How often each row comes, whatever its values are."""
    return Counter(repr(row) for row in frame.collect())


def sorted_rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows as tuples, in an order of their own."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def location_of(spark: SparkSession, table: str) -> str:
    """Where a table is, as DESCRIBE shows it."""
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return str(next(row.data_type for row in described if row.col_name == "Location"))


def failure_of(spark: SparkSession, statement: str) -> str:
    """The message with which a statement is refused."""
    with pytest.raises(AnalysisException) as caught:
        spark.sql(statement).collect()
    return str(caught.value)
