"""A standalone cluster of Spark on this machine: master and workers as processes of their own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
from tests.separate_process import ENVIRONMENT, free_ports

HOME = Path(pyspark.__path__[0])


@contextlib.contextmanager
def _process(*words: str, log: Path) -> Iterator[None]:
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
def cluster(folder: Path, num_workers: int = 1) -> Iterator[str]:
    """A master, and workers of two cores together and 1 GB each; gives the master's URL."""
    port, ui = map(str, free_ports(2))
    master = f"spark://127.0.0.1:{port}"
    package = "org.apache.spark.deploy"
    starting = [f"{package}.master.Master", "--host", "127.0.0.1", "--port", port]
    worker = [f"{package}.worker.Worker", "--cores", str(2 // num_workers), "--memory", "1g"]
    with contextlib.ExitStack() as processes:
        started = _process(*starting, "--webui-port", ui, log=folder / "master.log")
        processes.enter_context(started)
        for number in range(num_workers):
            place = ["--webui-port", "0", "--work-dir", str(folder / f"work{number}"), master]
            started = _process(*worker, *place, log=folder / f"worker{number}.log")
            processes.enter_context(started)
        _await_connection(int(port))
        yield master


def _await_connection(port: int) -> None:
    """Wait for the master: ``spark-submit`` in cluster mode asks it once."""
    deadline = time.monotonic() + 120
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, "no master"
        time.sleep(0.2)


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
    folder: Path, *words: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run ``spark-submit`` in a folder; executors get the interpreter ``python``."""
    interpreters = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(
        [str(HOME / "bin" / "spark-submit"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env={**ENVIRONMENT, **interpreters},
        cwd=folder,
    )
