"""The process and its connections: start, end, cancel, bad bytes, failures in mid-stream."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.present import present
from tests.worker.worker_client import (
    JVM,
    SOURCES,
    Connection,
    Driver,
    Worker,
    WorkerFailed,
    cpu_seconds,
    field,
    worker_arguments,
)


def big_leaf(root: Path, millions: int) -> None:
    def batches():
        for at in range(millions):
            yield pa.record_batch(
                {
                    "id": pa.array(np.arange(1_000_000) + at),
                    "x": pa.array(np.arange(1_000_000) / 7),
                }
            )

    schema = pa.schema({"id": pa.int64(), "x": pa.float64()})
    lance.write_dataset(
        pa.RecordBatchReader.from_batches(schema, batches()),
        str(root / "big.lance"),
        max_rows_per_file=1_000_000,
    )


def test_the_worker_says_that_it_is_ready(worker: Worker) -> None:
    assert worker.ready["ready"] is True
    assert worker.ready["pid"] == worker.process.pid
    assert worker.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("is_driver", [True, False])
def test_the_worker_of_an_executor_imports_nothing_of_catalogs(*, is_driver: bool) -> None:
    """Pydantic comes with ``lance_namespace``, which only a driver asks."""
    with tempfile.TemporaryDirectory() as folder:
        abandoned = Path(folder) / "pennon-worker-abandoned"
        abandoned.mkdir()
        os.utime(abandoned, (0, 0))
        started = subprocess.Popen(
            [
                *(sys.executable, "-P"),
                *worker_arguments(JVM | {"driver": is_driver, "temporary": folder}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin:/bin"},
        )
        deadline = time.monotonic() + 60
        # It tidies up once it has imported all that it means to.
        while abandoned.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        mapped = Path(f"/proc/{started.pid}/maps").read_text()
        present(started.stdin).close()
        assert started.wait(10) == 0
    assert not abandoned.exists()
    assert ("/pydantic_core/" in mapped) is is_driver


def test_the_files_of_a_killed_worker_are_removed_by_the_next_one(tmp_path: Path) -> None:
    """What did not fit its memory: gigabytes, perhaps, of each worker that is killed."""

    def folders() -> set[Path]:
        return set(tmp_path.glob("pennon-files-*"))

    killed = Worker(tmp_path)
    (of_killed,) = folders()
    (of_killed / "spilled.arrow").write_bytes(b"rows")
    alive = Worker(tmp_path)
    (of_alive,) = folders() - {of_killed}
    os.kill(killed.process.pid, signal.SIGKILL)
    assert killed.stop() == -signal.SIGKILL
    following = Worker(tmp_path)
    (of_following,) = folders() - {of_killed, of_alive}
    deadline = time.monotonic() + 60
    while of_killed.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert folders() == {of_alive, of_following}
    assert [alive.stop(), following.stop()] == [0, 0]
    assert folders() == set()


def test_a_worker_that_its_jvm_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    """A JVM that ends has no time to wait: it sends the signal and goes."""
    worker = Worker(tmp_path)
    (files,) = tmp_path.glob("pennon-files-*")
    (files / "spilled.arrow").write_bytes(b"rows")
    worker.process.terminate()
    assert worker.process.wait(10) == 0
    assert not files.exists()
    assert not worker.path.exists()
    worker.stop()


def test_a_worker_imports_no_pandas(worker: Worker) -> None:
    """It is half of a worker's start, and nothing in one needs it."""
    pytest.importorskip("pandas")
    mapped = Path(f"/proc/{worker.process.pid}/maps").read_text()
    assert "/pyarrow/_dataset" in mapped
    assert "/pandas/" not in mapped


def test_what_starts_a_worker_imports_neither_arrow_nor_lance_before_it_checks_them() -> None:
    script = "import sys, pennon.worker.__main__; print({'pyarrow', 'lance'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_what_answers_requests_is_imported_without_datafusion() -> None:
    """A worker is ready before that, which takes a quarter of a second; scans need none of it."""
    script = "import sys, pennon.worker.requests.dispatch; print('datafusion' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_worker_ends_with_its_standard_input(tmp_path: Path) -> None:
    worker = Worker()
    path = worker.path
    with worker.connect() as connection:
        Driver(connection, tmp_path).ask("list_namespaces", namespace=[])
        assert worker.stop() == 0
    assert not path.exists()


def test_ctrl_c_at_the_terminal_of_a_spark_shell_ends_no_worker(tmp_path: Path) -> None:
    """``spark-shell`` cancels its query and goes on; the signal reaches its whole group."""
    worker = Worker()
    with worker.connect() as connection:
        worker.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        Driver(connection, tmp_path).ask("list_namespaces", namespace=[])
    assert worker.stop() == 0


def test_the_worker_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        f"command = [sys.executable, *{worker_arguments(JVM | {'temporary': str(tmp_path)})!r}]\n"
        "w = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(w.stdout.readline().decode(), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin:/bin"},
    )
    ready = json.loads(present(parent.stdout).readline())
    pid, folder = ready["pid"], Path(ready["socket"]).parent
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    present(parent.stdout).close()
    deadline = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)
    assert not folder.exists()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_wrong_package_version_is_the_ready_error(tmp_path: Path) -> None:
    fake = tmp_path / "pylance-13.0.0.dist-info"
    fake.mkdir()
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: pylance\nVersion: 13.0.0\n")
    done = subprocess.run(
        [sys.executable, *worker_arguments()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={"PYTHONPATH": f"{tmp_path}:{SOURCES}", "PATH": "/usr/bin:/bin"},
        check=False,
    )
    ready = json.loads(done.stdout)
    assert (done.returncode, ready["ready"], ready["error"]["condition"]) == (
        1,
        False,
        "PACKAGE_VERSION",
    )
    assert "pylance 13.0.0" in ready["error"]["message"]
    assert sys.executable in ready["error"]["message"]
    assert b"Traceback" not in done.stderr


def test_an_unknown_operation_is_refused_and_the_connection_goes_on(driver: Driver) -> None:
    with pytest.raises(WorkerFailed, match="load_table") as failed:
        driver.ask("levitate")
    assert failed.value.condition == "UNKNOWN_OPERATION"
    with pytest.raises(WorkerFailed, match="no field namespace") as failed:
        driver.ask("describe_namespace")
    assert failed.value.condition == "MALFORMED_MESSAGE"
    assert driver.ask("list_namespaces", namespace=[]) == {"namespaces": [["shop"]]}


@pytest.mark.parametrize(
    "sent", [b"Z\0\0\0\0", b"J\0\0\0\2{]", b"J\0\0\0\2[]", b"J\xff\xff\xff\xff", b"E\0\0\0\0"]
)
def test_bytes_that_are_no_message_end_the_connection(worker: Worker, sent: bytes) -> None:
    with worker.connect() as connection:
        connection.socket.sendall(sent)
        with pytest.raises(WorkerFailed) as failed:
            connection.frame()
        assert failed.value.condition == "MALFORMED_MESSAGE"
        assert connection.socket.recv(1) == b""
    with worker.connect() as connection, pytest.raises(WorkerFailed):
        connection.request("levitate")


def test_a_closed_connection_stops_its_scan(driver: Driver, worker: Worker, tmp_path: Path) -> None:
    big_leaf(tmp_path / "lake", 8)
    plan, splits = driver.scan(driver.ask("load_table", identifier=["big"]))
    before = worker.log.read_text().count("its scan stops")
    reader = worker.connect()
    reader.request("read", scan=plan["scan"], split=splits["split"][0].as_py())
    reader.frame()
    reader.socket.close()
    deadline = time.monotonic() + 10
    while worker.log.read_text().count("its scan stops") == before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert worker.log.read_text().count("its scan stops") == before + 1
    used = cpu_seconds(worker)
    time.sleep(0.5)
    assert cpu_seconds(worker) - used < 0.2


def test_a_leaf_that_is_gone_is_named_in_place_of_the_reply(driver: Driver, tmp_path: Path) -> None:
    table = driver.create(["shop", "t"], [field("id", "long")])
    driver.insert(table, pa.table({"id": [1, 2]}))
    table = driver.ask("load_table", identifier=["shop", "t"])
    plan, splits = driver.scan(table)
    leaf = next((tmp_path / "lake").glob("*/*dataset"))
    shutil.rmtree(leaf)
    with pytest.raises(WorkerFailed, match=leaf.name.replace("$", r"\$")) as failed:
        driver.connection.rows(plan["scan"], splits["split"][0].as_py())
    assert failed.value.condition == "LEAF_MISSING"
    assert driver.ask("list_tables", namespace=["shop"]) == {"tables": ["t"]}


def test_a_failure_in_mid_stream_arrives_as_such(driver: Driver, tmp_path: Path) -> None:
    big_leaf(tmp_path / "lake", 4)
    plan, splits = driver.scan(driver.ask("load_table", identifier=["big"]))
    files = sorted((tmp_path / "lake" / "big.lance" / "data").iterdir())
    order = [
        file.path
        for fragment in lance.dataset(str(tmp_path / "lake" / "big.lance")).get_fragments()
        for file in fragment.data_files()
    ]
    (tmp_path / "lake" / "big.lance" / "data" / order[-1]).unlink()
    assert len(files) == 4
    connection = driver.connection
    assert connection.request("read", scan=plan["scan"], split=splits["split"][0].as_py()) == {
        "arrow": True
    }
    with pytest.raises(WorkerFailed) as failed:
        connection.arrow()
    assert failed.value.condition in {"LEAF_MISSING", "FILE_GONE"}
    assert "Traceback" not in failed.value.error["message"]
    assert driver.ask("list_namespaces", namespace=[])["namespaces"] == [["shop"]]


def test_a_write_that_fails_is_told_and_ends_its_connection_alone(
    driver: Driver, worker: Worker
) -> None:
    table = driver.create(["shop", "t"], [field("id", "long", nullable=False)])
    planned = driver.ask("plan_write", table=table["table"], schema=table["schema"])
    with worker.connect() as writing, pytest.raises(WorkerFailed, match="id") as failed:
        writing.upload(planned["write"], pa.table({"id": pa.array([1, None] * 50_000, pa.int64())}))
    assert failed.value.condition == "NOT_NULL_VIOLATED"
    with worker.connect() as writing, pytest.raises(WorkerFailed) as failed:
        writing.upload("nonsense", pa.table({"id": [1]}))
    assert failed.value.condition == "MALFORMED_MESSAGE"
    assert driver.ask("list_tables", namespace=["shop"]) == {"tables": ["t"]}


def test_a_row_that_is_refused_is_told_before_the_rest_is_sent(
    driver: Driver, worker: Worker
) -> None:
    table = driver.create(["shop", "t"], [field("id", "long", nullable=False)])
    planned = driver.ask("plan_write", table=table["table"], schema=table["schema"])
    rows = pa.table({"id": pa.array([None, 1], pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    with worker.connect() as writing:
        writing.ask_only("write", write=planned["write"])
        # Without the end of the stream: a writer of 10^8 rows has only begun.
        writing.send(b"A", sink.getvalue().to_pybytes()[:-8])
        writing.socket.settimeout(10)
        with pytest.raises(WorkerFailed, match="id") as failed:
            writing.frame()
    assert failed.value.condition == "NOT_NULL_VIOLATED"


def test_ids_of_rows_that_are_refused_are_told_before_the_rest_is_sent(worker: Worker) -> None:
    ids = pa.table({"_leaf": ["a"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ids.schema) as stream:
        stream.write_table(ids)
    with worker.connect() as deleting:
        deleting.ask_only("write_deletes", write="")
        deleting.send(b"A", sink.getvalue().to_pybytes()[:-8])
        deleting.socket.settimeout(10)
        with pytest.raises(WorkerFailed, match="_leaf_version"):
            deleting.frame()


def test_a_storage_option_is_never_shown(
    worker: Worker, connection: Connection, tmp_path: Path
) -> None:
    secret = "hush-" * 4
    driver = Driver(connection, tmp_path / secret / "deep", aws_secret_access_key=secret)
    with pytest.raises(WorkerFailed) as failed:
        driver.ask("list_namespaces", namespace=[])
    assert failed.value.condition == "ROOT_NOT_USABLE"
    assert secret not in json.dumps(failed.value.error)
    assert secret not in worker.log.read_text()


def test_a_slow_reader_holds_no_other_request_up(
    driver: Driver, worker: Worker, tmp_path: Path
) -> None:
    big_leaf(tmp_path / "lake", 4)
    plan, splits = driver.scan(driver.ask("load_table", identifier=["big"]))
    slow = worker.connect()
    slow.request("read", scan=plan["scan"], split=splits["split"][0].as_py())
    with worker.connect() as other:
        other.socket.settimeout(5)
        assert Driver(other, tmp_path / "lake").ask("list_tables", namespace=["shop"]) == {
            "tables": []
        }
    slow.socket.shutdown(socket.SHUT_RDWR)
    slow.socket.close()
