"""What a worker tells a JVM of another version: both versions, before anything is read."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile

import pytest
from tests.worker.worker_client import JVM, SOURCES, Worker, worker_arguments

import pennon
from pennon.session import find_jar
from pennon.worker.wire.protocol import PROTOCOL


def refusal(jvm: dict) -> dict:
    done = subprocess.run(
        [sys.executable, "-P", *worker_arguments(jvm)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    ready = json.loads(done.stdout)
    assert (done.returncode, ready["ready"]) == (1, False)
    return ready["error"]


@pytest.mark.parametrize("older", [{"jar": "0.0.9"}, {"protocol": "0123456789ab"}])
def test_a_jar_of_another_version_is_refused_by_both_names(older: dict) -> None:
    error = refusal(JVM | older)
    assert error["condition"] == "VERSIONS_DIFFER"
    assert pennon.__version__ in error["parameters"]["package"]
    assert str(next(iter(older.values()))) in error["parameters"]["jar"]


def test_a_jar_that_says_no_version_is_refused() -> None:
    assert refusal({})["condition"] == "VERSIONS_DIFFER"


def test_a_spark_that_the_jar_is_not_made_for_is_named() -> None:
    error = refusal(JVM | {"spark": "3.5.6"})
    assert error["condition"] == "SPARK_VERSION_NOT_SUPPORTED"
    assert "3.5.6" in error["message"]


def test_every_fact_about_the_jvm_is_required() -> None:
    for name in (
        "driver",
        "language",
        "cores",
        "heap_bytes",
        "timeout_seconds",
        "temporary",
        "user",
        "settings",
        "retired",
    ):
        without = {key: value for key, value in JVM.items() if key != name}
        error = refusal(without)
        assert error["condition"] == "MALFORMED_MESSAGE"
        assert name in error["message"]


def test_the_ready_line_names_both_versions(worker: Worker) -> None:
    assert (worker.ready["version"], worker.ready["protocol"]) == (pennon.__version__, PROTOCOL)


def test_jar_and_package_state_the_same_versions() -> None:
    with zipfile.ZipFile(find_jar()) as jar:
        declared = jar.read("dev/pennon/spark/worker/wire.json")
        assert hashlib.sha256(declared).hexdigest().startswith(PROTOCOL)
        assert (
            f"Implementation-Version: {pennon.__version__}"
            in jar.read("META-INF/MANIFEST.MF").decode().splitlines()
        )
