"""What every test may ask for: a lake on disk and the one Spark session of the run.

Spark allows one JVM per process, so all Spark tests share a session; each test that makes tables
takes the fixture ``namespace`` and so works in a namespace of its own. Tests that need another
kind of cluster or a server start it in a process of its own.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from tests import class_archive
from tests.stores.suite import PLACE, Folder, skip_looks_at_files

from pennon import session
from pennon.maintenance import expire as expire_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Settings of the run, not of Pennon; else Spark's own defaults. 200 shuffle partitions are a
# cluster's number. Where joins must not hide behind a broadcast, see `without_broadcasts`.
RUN_CONF = {
    "spark.ui.enabled": "false",
    "spark.pennon.optimizer.rethrow": "true",
    "spark.sql.shuffle.partitions": "5",
    "spark.sql.session.timeZone": "UTC",
    # Tables of tests are small: what is under test is how large ones are read.
    "spark.sql.catalog.lance.execution.oneTaskBytes": "0",
    "spark.sql.catalog.lance.execution.replicatedBytes": "0",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
os.environ.setdefault("SPARK_SUBMIT_OPTS", class_archive.options())
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path | Folder:
    """The root of the catalog ``lance``; on a store in `make test-store`."""
    return Folder(PLACE) / "lake" if PLACE else tmp_path_factory.mktemp("lake")


if PLACE:
    skip_looks_at_files()

    @pytest.fixture
    def tmp_path(
        request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Path | Folder:
        """A place on the store; of Spark, which writes files of its own, a folder as ever."""
        if "spark" in request.fixturenames:
            return tmp_path_factory.mktemp("test")
        return Folder(PLACE) / f"test{next(_numbers)}"


@pytest.fixture(scope="session")
def spark(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session of the run, two cores, catalog ``lance`` over ``lake``."""
    master = os.environ.get("PENNON_TEST_MASTER", "local[2]")
    builder = session.spark(root=lake).master(master).appName("pennon tests")
    for key, value in RUN_CONF.items():
        builder.config(key, value)
    builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel(os.environ.get("PENNON_TEST_LOG", "WARN"))
    yield started
    started.stop()


@pytest.fixture
def namespace(spark: SparkSession) -> Iterator[str]:
    """A fresh namespace; tables go under ``{namespace}.name``."""
    name = f"lance.ns{next(_numbers)}"
    spark.sql(f"CREATE NAMESPACE {name}")
    yield name
    spark.sql(f"DROP NAMESPACE IF EXISTS {name} CASCADE")


@pytest.fixture
def without_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let expired versions go from the disk at once, where a test looks for what is left there."""
    monkeypatch.setattr(expire_module, "writer_grace", lambda _: timedelta(0))


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in each run of a commit, but where a seed is given for new ones.

    One that draws anew fails for those who changed something else. `make torture` seeks more.
    """
    is_repeatable = config.getoption("hypothesis_seed", None) is None
    hypothesis.settings.register_profile("house", derandomize=is_repeatable, deadline=None)
    hypothesis.settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses Spark, and run it last: a fault in the library then shows in seconds."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=_weight)


def _weight(item: pytest.Item) -> int:
    if item.get_closest_marker("slow"):
        return 2
    return 1 if item.get_closest_marker("spark") else 0
