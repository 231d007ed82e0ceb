"""What the tests of fragments share: tables whose joins and aggregates the workers compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.execution.fragment_tables import made_fragment_tables
from tests.torture.execution.sessions import StarSessions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def fragment_tables(spark: SparkSession, without_broadcasts: None) -> Iterator[None]:
    yield from made_fragment_tables(spark)


@pytest.fixture(scope="module")
def star(spark: SparkSession) -> Iterator[StarSessions]:
    sessions = StarSessions(spark)
    yield sessions
    sessions.drop()
