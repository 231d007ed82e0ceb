"""A standalone cluster: executors that go in the middle of their work, and jobs in cluster mode.

Executors are killed, or end because they are idle under dynamic allocation. Run by
``make test-deployments``: each of these takes the better part of a minute.

Nothing is left to timing: what is to be met in the middle is stopped there. The executors' Pennon
workers are stopped by a signal, or a function of the query waits for a file.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from tests.separate_process import run_script
from tests.spark.deployments.standalone_cluster import cluster, packed_environment, submitted

from pennon.session import spark_conf

SOURCE = Path(__file__).parents[1] / "spark" / "deployments" / "extensions" / "StatementsJob.java"
START = """
import os, signal, sys, threading, time
from pathlib import Path
import pennon

folder, master = sys.argv[1:]
CONF = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalog.lance.execution.oneTaskBytes": "0",
}


def session(**more):
    builder = pennon.spark(root=f"{folder}/lake").master(master)
    for key, value in {**CONF, **more}.items():
        builder.config(key, value)
    return builder.getOrCreate()


def commands():
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            yield int(process.name), parent, (process / "cmdline").read_text()
        except (OSError, IndexError):
            pass


def executors():
    driver = f":{spark.conf.get('spark.driver.port')}\\0"
    return {pid for pid, _, command in commands()
            if "CoarseGrainedScheduler@" in command and driver in command}


def pennon_workers():
    of_cluster = executors()
    return {pid: up for pid, up, command in commands()
            if up in of_cluster and "pennon.worker" in command}


def await_that(condition, what):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def is_gone(pid):
    return pid not in {number for number, _, command in commands() if "pennon.worker" in command}


def in_background(statement):
    results = []
    def run():
        try:
            results.append([tuple(row) for row in spark.sql(statement).collect()])
        except Exception as e:
            results.append(str(e))
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results
"""
KILLED = (
    START
    + """
spark = session()
spark.sql("CREATE NAMESPACE lance.c")
rows = "SELECT id, id % 8 AS k, id % 5 AS v FROM range(0, 40000, 1, 4)"
spark.sql(f"CREATE TABLE lance.c.t PARTITIONED BY (k) AS {rows}")
# Without partitions, so that no shuffle stands between a row and its writer.
spark.sql("CREATE TABLE lance.c.written (id BIGINT)")
tracker = spark.sparkContext._jsc.sc().statusTracker()


def busy():
    return sum(executor.numRunningTasks() > 0 for executor in tracker.getExecutorInfos())


def with_a_killed_executor(query):
    # A scan of all partitions makes each executor start its worker.
    await_that(lambda: len(executors()) == 2, "two executors")
    while len(set(pennon_workers().values())) < 2:
        spark.sql("SELECT sum(id) FROM lance.c.t").collect()
    workers = pennon_workers()
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    thread, results = in_background(query)
    await_that(lambda: busy() == 2, "a task on each executor")
    victim = next(iter(workers.values()))
    os.kill(victim, signal.SIGKILL)
    for pid in workers:
        os.kill(pid, signal.SIGCONT)
    thread.join(200)
    for pid, executor in workers.items():
        if executor == victim:
            await_that(lambda: is_gone(pid), "the end of the worker of a killed executor")
    return results


printed = {"scan": with_a_killed_executor("SELECT id, v FROM lance.c.t WHERE v = 3")}
printed["scan"] = [len(rows) for rows in printed["scan"]]
grouped = "SELECT k, count(*), sum(v) FROM lance.c.t GROUP BY k ORDER BY k"
printed["is_fragment"] = "fragment: complete" in spark.sql(f"EXPLAIN {grouped}").head()[0]
printed["fragment"] = with_a_killed_executor(grouped)

held, go = Path(folder) / "held", Path(folder) / "go"
held.mkdir()


def hold(number):
    (held / f"{number}-{os.getpid()}").touch()
    while not go.exists():
        time.sleep(0.05)
    return number


spark.udf.register("hold", hold, "long")
await_that(lambda: len(executors()) == 2, "two executors")
# Two tasks: each writes 20,000 rows, which are more than a batch, and then waits for its last row.
spark.conf.set("spark.sql.unionOutputPartitioning", "false")
ranges = [("id", 0, 20000), ("hold(id)", 20000, 20001),
          ("id", 20001, 40000), ("hold(id)", 40000, 40001)]
parts = " UNION ALL ".join(
    f"SELECT {id_} AS id FROM range({first}, {end}, 1, 1)" for id_, first, end in ranges
)
insert = f"INSERT INTO lance.c.written SELECT /*+ COALESCE(2) */ * FROM ({parts})"
thread, results = in_background(insert)
await_that(lambda: len(list(held.iterdir())) >= 2, "both tasks of the write")
await_that(lambda: len(pennon_workers()) == 2, "the workers of both writers")
before = pennon_workers()
victim = next(iter(before.values()))
os.kill(victim, signal.SIGKILL)
for pid, executor in before.items():
    if executor == victim:
        await_that(lambda: is_gone(pid), "the end of the worker of a killed writer")
# Read without Spark, for the executors' cores are taken.
written = next(path for path in Path(f"{folder}/lake").glob("*$written"))
printed["before"] = pennon.open(written).scan().to_arrow().num_rows
go.touch()
thread.join(200)
assert results == [[]], results
summed = "SELECT count(*), sum(id), count(DISTINCT id) FROM lance.c.written"
printed["written"] = tuple(spark.sql(summed).head())
mine = pennon_workers()
spark.stop()
for pid in mine:
    await_that(lambda: is_gone(pid), "the end of the workers of a session that stopped")
print(repr(printed))
"""
)
IDLE = (
    START
    + """
spark = session(**{
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "2",
})
spark.sql("CREATE NAMESPACE lance.d")
spark.sql("CREATE TABLE lance.d.t PARTITIONED BY (k) AS SELECT id, id % 8 AS k FROM range(4000)")
counts = []
for _ in range(2):
    counts.append(spark.sql("SELECT count(DISTINCT k), sum(id) FROM lance.d.t").head()[:])
    started = pennon_workers()
    await_that(lambda: not executors(), "the end of idle executors")
    for pid in started:
        await_that(lambda: is_gone(pid), "the end of an idle executor's worker")
print(repr(counts))
spark.stop()
"""
)


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster"), num_workers=2) as url:
        yield url


def test_a_killed_executor_takes_no_row_and_leaves_no_worker(tmp_path: Path, master: str) -> None:
    said = run_script(KILLED, str(tmp_path), master, timeout_seconds=500)
    printed = ast.literal_eval(said.splitlines()[-1])
    groups = [list(range(k, 40000, 8)) for k in range(8)]
    sums = [(k, len(group), sum(id_ % 5 for id_ in group)) for k, group in enumerate(groups)]
    assert printed == {
        "scan": [8000],
        "is_fragment": True,
        "fragment": [sums],
        "before": 0,
        "written": (40001, sum(range(40001)), 40001),
    }


def test_executors_that_come_and_go_take_their_workers_along(tmp_path: Path, master: str) -> None:
    printed = run_script(IDLE, str(tmp_path), master, timeout_seconds=500).splitlines()[-1]
    assert ast.literal_eval(printed) == [(8, sum(range(4000)))] * 2


def test_a_job_without_python_runs_in_cluster_mode(tmp_path: Path) -> None:
    """The driver is a process of the cluster; its jar has no Python, the environment has."""
    started, said = tmp_path / "started", tmp_path / "said"
    jars = Path(pyspark.__file__).parent / "jars"
    subprocess.run(
        ["javac", "-cp", f"{jars}/*", "-d", str(tmp_path / "classes"), str(SOURCE)], check=True
    )
    job = tmp_path / "job.jar"
    subprocess.run(["jar", "cf", str(job), "-C", str(tmp_path / "classes"), "."], check=True)
    environment = packed_environment(tmp_path, started)
    conf = {
        **spark_conf(tmp_path / "lake"),
        "spark.pyspark.python": "./environment/bin/python",
        "spark.pyspark.driver.python": sys.executable,
        "spark.archives": f"{environment}#environment",
        "spark.standalone.submit.waitAppCompletion": "true",
        # spark-submit gives it to drivers in client mode, and SparkContext to executors.
        "spark.driver.extraJavaOptions": "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    statements = [
        "CREATE TABLE lance.t PARTITIONED BY (bucket(4, id)) AS SELECT id FROM range(100)",
        "SELECT count(*), sum(id) FROM lance.t JOIN lance.t AS other USING (id)",
    ]
    with cluster(tmp_path, num_workers=2) as master:
        words = ["--master", master, "--deploy-mode", "cluster", *words]
        words += ["--class", "tests.StatementsJob", str(job), str(said), *statements]
        done = submitted(tmp_path, *words)
    assert said.exists(), done.stderr[-3000:]
    assert json.loads(said.read_text()) == {"count(1)": 100, "sum(id)": sum(range(100))}
    assert "./environment/bin/python -P -m pennon.worker" in started.read_text()
