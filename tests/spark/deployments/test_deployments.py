"""Sessions as people deploy them: each in a process of its own, started as its user would."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from tests.separate_process import run_script

START = """
import ast, os, sys
import pennon

builder = pennon.spark(root=sys.argv[1]).master("local[2]").config("spark.ui.enabled", "false")
builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
for key, value in ast.literal_eval(sys.argv[2]).items():
    builder.config(key, value)
spark = builder.getOrCreate()
"""
WRITE_READ_JOIN = """
spark.sql("CREATE NAMESPACE lance.c")
select = "SELECT id, concat('r', id % 3) AS region FROM range(90)"
spark.sql(f"CREATE TABLE lance.c.l PARTITIONED BY (region) AS {select}")
spark.sql(f"CREATE TABLE lance.c.r PARTITIONED BY (bucket(4, id)) AS {select}")
spark.sql(f"INSERT INTO lance.c.l {select}")
joined = spark.sql("SELECT l.region, r.id FROM lance.c.l JOIN lance.c.r USING (id)").collect()
rows = spark.sql("SELECT * FROM lance.c.r").collect()
print(repr((len(joined), len(rows))))
spark.stop()
"""


def printed(script: str, root: Path, conf: dict[str, str] | None = None) -> object:
    return ast.literal_eval(run_script(script, str(root), repr(conf or {})).splitlines()[-1])


def test_kryo_serializes_what_tasks_report(tmp_path: Path) -> None:
    kryo = {"spark.serializer": "org.apache.spark.serializer.KryoSerializer"}
    assert printed(START + WRITE_READ_JOIN, tmp_path, kryo) == (180, 90)


def test_a_container_has_a_long_temporary_folder_and_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on YARN: tmpdir below the container's folder, a relative interpreter, and no home."""
    long = tmp_path / ("c" * 120) / "tmp"
    long.mkdir(parents=True)
    options = {"spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={long}"}
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    monkeypatch.setenv("HOME", str(tmp_path / "absent"))
    script = START + "assert spark.conf.get('spark.pyspark.python').startswith('./environment/')\n"
    assert printed(script + WRITE_READ_JOIN, tmp_path / "lake", options) == (180, 90)


def test_a_file_of_the_working_folder_is_no_module_of_the_worker(tmp_path: Path) -> None:
    (tmp_path / "lance.py").write_text("raise SystemExit('the wrong lance')\n")
    script = f"import os, sys\nsys.path.remove('')\nos.chdir({str(tmp_path)!r})\n" + START
    assert printed(script + WRITE_READ_JOIN, tmp_path / "lake") == (180, 90)


# An interpreter whose worker cannot derive keys.
BROKEN = """#!{python}
import sys
from pennon.worker.requests import dispatch

def broken(request, frames):
    raise RuntimeError("out of order")

of_driver = dispatch.driver_handlers
dispatch.driver_handlers = lambda: {{**of_driver(), "derive_keys": broken}}
sys.argv = [sys.argv[0], *sys.argv[4:]]
from pennon.worker import __main__ as worker
sys.exit(worker.main())
"""


def test_a_query_of_which_nothing_could_be_decided_is_executed_as_spark_planned_it(
    tmp_path: Path,
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(BROKEN.format(python=sys.executable))
    interpreter.chmod(0o755)
    conf = {
        "spark.pyspark.driver.python": str(interpreter),
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    count = "joined.append(spark._jvm.dev.pennon.spark.plan.UndecidedPlans.count())\nprint(repr"
    counted = WRITE_READ_JOIN.replace("print(repr", count).replace("len(joined)", "joined[-1] > 0")
    assert printed(START + counted, tmp_path / "lake", conf) == (True, 90)


# Nothing but the session: no statement names the catalog.
WAIT_FOR_A_WORKER = """
import subprocess, time
jvm = str(spark._jvm.ProcessHandle.current().pid())
listing = ["ps", "--ppid", jvm, "-o", "args="]
deadline = time.monotonic() + 120
while b"pennon.worker" not in subprocess.run(listing, capture_output=True).stdout:
    assert time.monotonic() < deadline
    time.sleep(0.1)
print(repr("started"))
spark.stop()
"""


def test_the_worker_starts_with_the_session_and_not_with_its_first_query(tmp_path: Path) -> None:
    assert printed(START + WAIT_FOR_A_WORKER, tmp_path) == "started"


LIST_WORKERS = """
import subprocess
spark.range(9).groupBy("id").count().collect()
jvm = str(spark._jvm.ProcessHandle.current().pid())
children = subprocess.run(["ps", "--ppid", jvm, "-o", "args="], capture_output=True).stdout
print(repr(b"pennon.worker" in children))
spark.stop()
"""


def test_a_session_without_a_catalog_of_pennon_has_no_worker(tmp_path: Path) -> None:
    other = {"spark.sql.catalog.lance": "of.another.Format"}
    assert printed(START + LIST_WORKERS, tmp_path, other) is False
