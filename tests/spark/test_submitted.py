"""spark-submit to a standalone cluster of processes of their own, as docs/deployment.md has it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from pennon.session import find_jar
from separate_process import ENVIRONMENT, free_port

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


def submitted(job: Path, *words: str) -> subprocess.CompletedProcess[str]:
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(
        [str(HOME / "bin" / "spark-submit"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env={**ENVIRONMENT, **python},
        cwd=job.parent,
    )


@pytest.mark.slow
def test_a_job_runs_on_a_standalone_cluster(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    lake = str(tmp_path / "lake")
    with cluster(tmp_path) as master:
        words = ["--master", master, "--executor-memory", "512m", "--jars", str(find_jar())]
        done = submitted(job, *words, str(job), lake)
    assert "joined 100" in done.stdout, done.stderr[-3000:]
    assert done.returncode == 0


@pytest.mark.slow
def test_spark_submit_without_the_jar_says_which_line_works(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    done = submitted(job, "--master", "local[1]", str(job), str(tmp_path / "lake"))
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "[JVM_WITHOUT_PENNON]" in said
    assert f"spark-submit --jars {find_jar()}" in said
