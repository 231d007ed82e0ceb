"""The Spark session of a torture: Pennon's catalog over a folder of its own, for small queries."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.conftest import RUN_CONF

from pennon import session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["NOT_COMPILED", "torture_session"]

# Many queries over few rows: a JVM that compiles little and keeps nothing of what is over.
_SMALL_QUERIES: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.ui.explainMode": "simple",
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xmn1g"
    ),
}
NOT_COMPILED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling what runs once over some hundred rows would take most of the time."""


@contextlib.contextmanager
def torture_session(
    settings: Mapping[str, str], *, folder: Path | None = None, master: str = "local[2]"
) -> Iterator[tuple[SparkSession, Path]]:
    """Start the session, and stop it.

    Args:
        settings: What is set beside what every run of tests sets.
        folder: Where its files stay; None for a folder that goes with it.
        master: Spark's.
    """
    with tempfile.TemporaryDirectory(prefix="pennon-torture-") as made:
        place = folder or Path(made)
        builder = session.spark(root=place / "lake").master(master)
        for key, value in {**RUN_CONF, **_SMALL_QUERIES, **settings}.items():
            builder.config(key, value)
        builder.config("spark.sql.warehouse.dir", str(Path(made) / "warehouse"))
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark, place
        finally:
            spark.stop()
