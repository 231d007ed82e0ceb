"""YARN in the small: Hadoop's own, fetched, with one node; containers have what they ask for.

A job in Python runs in client and in cluster mode, with the environment that ``--archives`` brings,
as docs/deployment.md has it. Run by ``make test-deployments``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from tests.separate_process import ENVIRONMENT
from tests.spark.deployments.standalone_cluster import packed_environment

from pennon.session import spark_conf

HERE = Path(__file__).parent
JARS = Path(pyspark.__file__).parent / "jars"
REPOSITORY = Path.home() / ".m2" / "repository"
CLUSTER = "hadoop-client-minicluster"
# What it needs and does not bring: it finds its folder by a class for tests, and makes keys.
BESIDE = (
    *(("org.bouncycastle", f"bc{name}-jdk18on", "1.82") for name in ("prov", "pkix", "util")),
    ("org.junit.jupiter", "junit-jupiter-api", "5.13.4"),
    ("org.junit.platform", "junit-platform-commons", "1.13.4"),
    ("org.opentest4j", "opentest4j", "1.3.0"),
)
JOB = """
import json, sys
from pathlib import Path
import pennon
from pyspark.sql import SparkSession

spark = pennon.configure(SparkSession.builder.appName("job"), root=sys.argv[1]).getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.shop")
rows = "SELECT id, id % 8 AS k FROM range(0, 200000, 1, 4)"
spark.sql(f"CREATE OR REPLACE TABLE lance.shop.t PARTITIONED BY (bucket(8, k)) AS {rows}")
grouped = spark.sql("SELECT k, count(*), sum(id) FROM lance.shop.t GROUP BY k")
joined = spark.sql("SELECT count(*) FROM lance.shop.t a JOIN lance.shop.t b USING (id, k)")
answers = [sorted(map(list, grouped.collect())), joined.head()[0]]
Path(sys.argv[2]).write_text(json.dumps(answers))
spark.stop()
"""


def fetched() -> list[Path]:
    """The jars of the cluster, of the Hadoop that pyspark has; none where they cannot be had."""
    version = next(JARS.glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
    found = []
    for group, name, wanted in (*BESIDE, ("org.apache.hadoop", CLUSTER, version)):
        place = REPOSITORY.joinpath(*group.split("."), name, wanted, f"{name}-{wanted}.jar")
        if not place.exists() and shutil.which("mvn") is not None:
            get = ["mvn", "-q", "dependency:get", f"-Dartifact={group}:{name}:{wanted}"]
            subprocess.run([*get, "-Dtransitive=false"], check=False)
        if not place.exists():
            return []
        found.append(place)
    return found


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a running cluster's settings."""
    jars = fetched()
    if not jars:
        pytest.skip("the cluster cannot be had")
    folder = tmp_path_factory.mktemp("yarn")
    path = ":".join(map(str, (folder, *jars, JARS / "*")))
    compiled = ["javac", "-cp", path, "-d", str(folder), str(HERE / "YarnCluster.java")]
    subprocess.run(compiled, check=True)
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(
            ["java", "-Xmx512m", "-cp", path, "tests.YarnCluster", str(folder)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + 120
            while not (folder / "yarn-site.xml").exists():
                assert running.poll() is None, (folder / "log").read_text()[-3000:]
                assert time.monotonic() < deadline, "no cluster"
                time.sleep(0.2)
            yield folder
        finally:
            assert running.stdin is not None
            running.stdin.close()
            running.wait(60)


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_job_runs_in_containers(tmp_path: Path, settings: Path, mode: str) -> None:
    job, started, said = tmp_path / "job.py", tmp_path / "started", tmp_path / "said"
    job.write_text(JOB)
    environment = packed_environment(tmp_path, started)
    python = "./environment/bin/python"
    conf = {
        **spark_conf(tmp_path / "lake"),
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": sys.executable if mode == "client" else python,
        "spark.yarn.jars": f"local:{JARS}/*",
        "spark.yarn.stagingDir": f"file:{tmp_path}/staging",
        "spark.executor.instances": "2",
        "spark.executor.memory": "512m",
        "spark.executor.memoryOverhead": "1g",
        "spark.driver.memory": "512m",
        "spark.driver.memoryOverhead": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.catalog.lance.execution.oneTaskBytes": "0",
    }
    words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    words = ["--archives", f"{environment}#environment", *words, str(job)]
    submit = [str(JARS.parent / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode]
    done = subprocess.run(
        [*submit, *words, str(tmp_path / "lake"), str(said)],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        cwd=tmp_path,
        env={**ENVIRONMENT, "HADOOP_CONF_DIR": str(settings), "JAVA_HOME": java_home()},
    )
    assert said.exists(), done.stderr[-3000:] + (settings / "log").read_text()[-3000:]
    groups = [[k, 25_000, sum(range(k, 200_000, 8))] for k in range(8)]
    assert said.read_text() == str([groups, 200_000])
    workers = [line for line in started.read_text().splitlines() if "-m pennon.worker" in line]
    of_driver = [line for line in workers if '"driver":true' in line]
    assert len(of_driver) == (mode == "cluster")
    assert len(workers) > len(of_driver)
    for line in workers:
        place, _, command = line.partition(" ")
        assert "/container_" in place
        assert command.startswith(f"{python} -P -m pennon.worker")
        assert '"spark.executor.memoryOverhead":"1g"' in command


def java_home() -> str:
    stated = os.environ.get("JAVA_HOME")
    return stated or str(Path(shutil.which("java") or "").resolve().parents[1])
