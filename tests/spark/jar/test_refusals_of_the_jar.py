"""What the jar refuses by itself, before a worker is asked or because there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from tests.separate_process import run_script

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CATALOG = "dev.pennon.spark.PennonCatalog"
WITHOUT_WORKER = """
import sys
from pennon.session import spark_conf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

def refused(action):
    try:
        action()
    except PySparkException as error:
        print(str(error).splitlines()[0])

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for key, value in spark_conf(sys.argv[1]).items():
    if not key.startswith("spark.sql.catalog."):
        builder.config(key, value)
spark = builder.config("spark.pyspark.driver.python", "/absent/python").getOrCreate()
refused(lambda: spark.read.format("pennon").load(sys.argv[1]))
spark.conf.set("spark.sql.catalog.lance", "dev.pennon.spark.PennonCatalog")
spark.conf.set("spark.sql.catalog.lance.root", sys.argv[1])
refused(lambda: spark.sql("SHOW NAMESPACES IN lance").collect())
spark.stop()
"""
WITH_A_TIMEOUT = """
import sys
import pennon
from pyspark.errors import PySparkException

builder = pennon.spark(root=sys.argv[1]).master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.pennon.worker.timeout", "soon").getOrCreate()
try:
    spark.sql("SHOW NAMESPACES IN lance").collect()
except PySparkException as error:
    print(str(error).splitlines()[0])
spark.stop()
"""


def test_a_session_without_catalog_and_one_without_worker_say_what_to_set(tmp_path: Path) -> None:
    first, second = run_script(WITHOUT_WORKER, str(tmp_path)).splitlines()
    assert first.startswith('[CATALOG_NOT_CONFIGURED] Cannot use format("pennon"): the session')
    assert f"spark.sql.catalog.lance = {CATALOG} and" in first
    assert second.startswith("[WORKER_NOT_STARTED] Cannot start the Pennon worker with the Python")
    assert "interpreter '/absent/python': it cannot be run" in second
    assert "Set spark.pyspark.python (or PYSPARK_PYTHON)" in second


def test_a_catalog_without_a_root_is_refused(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.catalog.rootless", CATALOG)
    with pytest.raises(AnalysisException, match="CATALOG_ROOT_MISSING.*catalog.rootless.root"):
        spark.sql("SHOW NAMESPACES IN rootless")
    spark.conf.set("spark.sql.catalog.rootless.root", "")
    with pytest.raises(AnalysisException, match="CATALOG_ROOT_MISSING.*catalog.rootless.root"):
        spark.sql("SHOW NAMESPACES IN rootless")
    spark.conf.unset("spark.sql.catalog.rootless")
    spark.conf.unset("spark.sql.catalog.rootless.root")


def test_an_argument_that_no_transform_takes_is_refused(
    spark: SparkSession, namespace: str
) -> None:
    with pytest.raises(AnalysisException, match="TRANSFORM_ARGUMENT_NOT_SUPPORTED.* 1.5 "):
        spark.sql(f"CREATE TABLE {namespace}.t (s STRING) PARTITIONED BY (truncate(1.5, s))")


@pytest.mark.parametrize("setting", ["spark.pennon.worker.memory", "spark.pennon.worker.timeout"])
def test_a_setting_of_the_application_is_not_set_in_a_session(
    spark: SparkSession, setting: str
) -> None:
    for statement in (f"SET {setting} = 5", f"SET {setting} = nonsense", f"RESET {setting}"):
        with pytest.raises(AnalysisException, match=f"CANNOT_MODIFY.*{setting}"):
            spark.sql(statement)
    assert spark.conf.get(setting, None) is None


def test_a_timeout_that_is_no_time_is_refused_by_one_message(tmp_path: Path) -> None:
    refused = run_script(WITH_A_TIMEOUT, str(tmp_path))
    assert refused.startswith(
        "[TIME_UNKNOWN] Cannot use spark.pennon.worker.timeout = soon: it is no time. "
    )
