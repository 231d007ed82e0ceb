"""spark-submit to a standalone cluster of processes of their own, as docs/deployment.md has it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from tests.separate_process import ENVIRONMENT, free_port

from pennon.session import find_jar

HOME = Path(pyspark.__path__[0])
JOB = """
import sys
import pennon
from pyspark.sql import SparkSession
from pyspark.sql.functions import partitioning

spark = pennon.configure(SparkSession.builder.appName("job"), root=sys.argv[1]).getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.shop")
rows = spark.range(100).writeTo("lance.shop.t")
rows.partitionedBy(partitioning.bucket(4, "id")).createOrReplace()
joined = spark.sql("SELECT count(*) FROM lance.shop.t a JOIN lance.shop.t b USING (id)").collect()
print("joined", joined[0][0])
"""


@contextlib.contextmanager
def process(*words: str, log: Path) -> Iterator[None]:
    with log.open("w") as output:
        running = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *words],
            stdout=output,
            stderr=output,
            env={**ENVIRONMENT, "SPARK_DAEMON_MEMORY": "512m"},
        )
        try:
            yield
        finally:
            running.terminate()
            running.wait(60)


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and a worker; gives the master's URL."""
    port, ui = str(free_port()), str(free_port())
    master = f"spark://127.0.0.1:{port}"
    package = "org.apache.spark.deploy"
    starting = [f"{package}.master.Master", "--host", "127.0.0.1", "--port", port]
    with (
        process(*starting, "--webui-port", ui, log=folder / "master.log"),
        process(
            f"{package}.worker.Worker",
            *("--cores", "2", "--memory", "1g", "--webui-port", "0"),
            *("--work-dir", str(folder / "work"), master),
            log=folder / "worker.log",
        ),
    ):
        yield master


def packed_environment(folder: Path, log: Path) -> Path:
    """Pack an environment whose interpreter is this one, and notes how it was started."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\necho "$PWD $0 $*" >> {log}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    packed = folder / "environment.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(python, "bin/python")
    return packed


def submitted(
    job: Path, *words: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    interpreters = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(
        [str(HOME / "bin" / "spark-submit"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env={**ENVIRONMENT, **interpreters},
        cwd=job.parent,
    )


@pytest.mark.slow
def test_a_job_runs_on_a_standalone_cluster_with_a_packed_environment(tmp_path: Path) -> None:
    """Executors' workers run in what ``spark.archives`` brought, and know what memory there is."""
    job, started = tmp_path / "job.py", tmp_path / "started"
    job.write_text(JOB)
    environment = packed_environment(tmp_path, started)
    with cluster(tmp_path) as master:
        words = ["--master", master, "--executor-memory", "512m", "--jars", str(find_jar())]
        words += ["--archives", f"{environment}#environment"]
        words += ["--conf", "spark.executor.memoryOverhead=700m"]
        words += [str(job), str(tmp_path / "lake")]
        done = submitted(job, *words, python="./environment/bin/python")
    assert "joined 100" in done.stdout, done.stderr[-3000:]
    assert done.returncode == 0
    workers = [line for line in started.read_text().splitlines() if "-m pennon.worker" in line]
    assert workers
    for line in workers:
        place, _, command = line.partition(" ")
        assert Path(place).is_relative_to(tmp_path / "work")
        assert command.startswith("./environment/bin/python -P -m pennon.worker")
        assert '"spark.executor.memoryOverhead":"700m"' in command


@pytest.mark.slow
def test_spark_submit_without_the_jar_says_which_line_works(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    done = submitted(job, "--master", "local[1]", str(job), str(tmp_path / "lake"))
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "[JVM_WITHOUT_PENNON]" in said
    assert f"spark-submit --jars {find_jar()}" in said
