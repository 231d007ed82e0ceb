"""``make test-deployments``: each setting and neighbour by itself, rows compared with Parquet's.

Settings of a session share one process; what has to be there when Spark starts has one of its own.
The short form, several settings at once, is `test_deployment_settings.py` of the Spark tests.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.deployments.same_rows import (
    different_beside_each_other,
    different_queries,
    different_writes,
    make_tables,
    settings,
)

import pennon
from pennon.session import find_jar
from pennon.settings import JAR

ROOT = Path(__file__).parents[2]
NAMESPACE = "lance.deployed"
# Spark's own defaults, but for the partitions of a shuffle, which cost minutes and decide nothing.
START = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
BASELINE = {"spark.sql.shuffle.partitions": "4"}
OF_SESSION: Mapping[str, Mapping[str, str]] = {
    "Spark's own defaults": {},
    "time zone America/New_York": {"spark.sql.session.timeZone": "America/New_York"},
    "time zone Asia/Kolkata": {"spark.sql.session.timeZone": "Asia/Kolkata"},
    "ANSI off": {"spark.sql.ansi.enabled": "false"},
    "AQE off": {"spark.sql.adaptive.enabled": "false"},
    "whole-stage code generation off": {"spark.sql.codegen.wholeStage": "false"},
    "no code generation": {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
    "no broadcasts": {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    },
    "large tables": {
        "spark.sql.catalog.lance.execution.oneTaskBytes": "0",
        "spark.sql.catalog.lance.execution.replicatedBytes": "0",
    },
    "Spark executes": {"spark.sql.catalog.lance.execution": "spark"},
    "Arrow functions over columns": {
        "spark.sql.execution.pythonUDF.arrow.enabled": "true",
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "true",
    },
}
OF_PROCESS: Mapping[str, Mapping[str, str]] = {
    "Kryo": {"spark.serializer": "org.apache.spark.serializer.KryoSerializer"},
    "a long temporary folder": {"spark.driver.extraJavaOptions": "-Djava.io.tmpdir={long}"},
    "two catalogs, two roots": {
        "spark.sql.catalog.other": "dev.pennon.spark.PennonCatalog",
        "spark.sql.catalog.other.root": "{folder}/other",
    },
}
NEIGHBOUR_SPARK = "4.1.4"
_PENNON = "dev.pennon.spark.PennonExtensions"


@dataclass(frozen=True)
class Neighbour:
    """Another table format in the session: its extension, its package, and a job of its own."""

    name: str
    extension: str
    package: str
    job: str


NEIGHBOURS = (
    Neighbour(
        "iceberg",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "tests.deployments.iceberg_job",
    ),
    Neighbour(
        "delta",
        "io.delta.sql.DeltaSparkSessionExtension",
        "io.delta:delta-spark_4.1_2.13:4.4.0",
        "tests.deployments.delta_job",
    ),
)


_NAMES = ("session", *OF_PROCESS, *(neighbour.name for neighbour in NEIGHBOURS))


def main() -> int:
    """Run all, or those that are named; the exit code is 1 where rows differ."""
    arguments = argparse.ArgumentParser(prog="tests.deployments.matrix")
    arguments.add_argument("--only", choices=_NAMES, action="append")
    arguments.add_argument("--in-process", help=argparse.SUPPRESS)
    stated = arguments.parse_args()
    if stated.in_process is not None:
        return _in_process(ast.literal_eval(stated.in_process))
    with tempfile.TemporaryDirectory() as folder:
        # A jar that is made anew meanwhile would be pulled away from a JVM that has it open.
        os.environ[JAR.name] = str(shutil.copy(find_jar(), folder))
        return _run(stated.only)


def _run(only: Sequence[str] | None) -> int:
    runs: dict[str, Callable[[], list[str]]] = {"session": lambda: _apart(OF_SESSION, {})}
    for name, conf in OF_PROCESS.items():
        runs[name] = partial(_apart, {name: {}}, conf)
    for neighbour in NEIGHBOURS:
        runs[neighbour.name] = partial(beside, neighbour)
    failed = 0
    for name in only or runs:
        found = runs[name]()
        failed += len(found)
        print("\n".join(found), end="\n" if found else "", flush=True)
    return 1 if failed else 0


def _apart(of_session: Mapping[str, Mapping[str, str]], conf: Mapping[str, str]) -> list[str]:
    """Run settings in a process of their own, whose JVM is started with ``conf``."""
    with tempfile.TemporaryDirectory() as folder:
        long = Path(folder) / ("c" * 120) / "tmp"
        long.mkdir(parents=True)
        places = {"folder": folder, "long": str(long)}
        started = {key: value.format(**places) for key, value in conf.items()}
        job = repr((folder, started, {name: dict(value) for name, value in of_session.items()}))
        command = [sys.executable, "-m", "tests.deployments.matrix", "--in-process", job]
        done = subprocess.run(command, cwd=ROOT, check=False)
        return [] if done.returncode == 0 else [f"failed: {', '.join(of_session)}"]


def _in_process(job: tuple[str, dict[str, str], dict[str, dict[str, str]]]) -> int:
    folder, conf, of_session = job
    builder = pennon.spark(root=f"{folder}/lake").master("local[2]")
    for key, value in {**START, **BASELINE, **conf}.items():
        builder.config(key, value)
    spark = builder.getOrCreate()
    catalogs = ["lance", *(["other"] if "spark.sql.catalog.other" in conf else [])]
    namespaces = [f"{catalog}.deployed" for catalog in catalogs]
    failed = 0
    for namespace in namespaces:
        make_tables(spark, Path(folder), namespace)
    for name, confs in of_session.items():
        begun = time.monotonic()
        session = spark.newSession()
        with settings(session, confs):
            found = []
            for namespace in namespaces:
                found += different_queries(session, Path(folder), namespace)
                found += different_writes(session, Path(folder), namespace)
        failed += _told(name, found, begun)
    if len(namespaces) > 1:
        query = f"SELECT count(*) FROM {namespaces[0]}.facts JOIN {namespaces[1]}.events USING (id)"
        count = spark.sql(query).head()[0]
        failed += _told("a join across", [] if count == 300 else [f"{count} rows"], begun)
    elif not conf:
        begun = time.monotonic()
        found = different_beside_each_other(spark, Path(folder), NAMESPACE)
        failed += _told("eight sessions at once", found, begun)
    spark.stop()
    return 1 if failed else 0


def _told(name: str, found: list[str], begun: float) -> int:
    seconds = time.monotonic() - begun
    print(f"{'differs' if found else 'same rows':9} {seconds:5.0f} s  {name}", flush=True)
    for failure in found:
        print(f"          {failure}", flush=True)
    return len(found)


def beside(neighbour: Neighbour) -> list[str]:
    """Run its statements without Pennon, and with it before and behind."""
    folder = ROOT / "build" / f"spark-{NEIGHBOUR_SPARK}"
    made = [str(ROOT / "setup" / "spark-venv"), sys.executable, str(folder), NEIGHBOUR_SPARK]
    subprocess.run(made, cwd=ROOT, check=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    alone, different = "", []
    orders = (neighbour.extension, f"{neighbour.extension},{_PENNON}")
    for extensions in (*orders, f"{_PENNON},{neighbour.extension}"):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as place:
            python, package = str(folder / "bin" / "python"), neighbour.package
            command = [python, "-m", neighbour.job, place, extensions, package]
            done = subprocess.run(
                command, cwd=place, env=environment, check=False, capture_output=True, text=True
            )
        said = done.stdout.splitlines()[-1] if done.returncode == 0 else done.stderr[-3000:]
        alone = alone or said
        found = [said] if said != alone or done.returncode != 0 else []
        _told(f"Spark {NEIGHBOUR_SPARK}, extensions {extensions}", found, begun)
        different += found
    return different


if __name__ == "__main__":
    sys.exit(main())
