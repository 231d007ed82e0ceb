"""spark-submit to a standalone cluster of processes of their own, as docs/deployment.md has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.deployments.standalone_cluster import cluster, packed_environment, submitted

from pennon.session import find_jar

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
        done = submitted(tmp_path, *words, python="./environment/bin/python")
    assert "joined 100" in done.stdout, done.stderr[-3000:]
    assert done.returncode == 0
    workers = [line for line in started.read_text().splitlines() if "-m pennon.worker" in line]
    assert workers
    for line in workers:
        place, _, command = line.partition(" ")
        assert Path(place).is_relative_to(tmp_path / "work0")
        assert command.startswith("./environment/bin/python -P -m pennon.worker")
        assert '"spark.executor.memoryOverhead":"700m"' in command


@pytest.mark.slow
def test_spark_submit_without_the_jar_says_which_line_works(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    done = submitted(tmp_path, "--master", "local[1]", str(job), str(tmp_path / "lake"))
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "[JVM_WITHOUT_PENNON]" in said
    assert f"spark-submit --jars {find_jar()}" in said
