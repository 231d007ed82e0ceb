"""A client of the protocol in a few lines of sockets: it shares no code with the worker."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Self

import pyarrow as pa
from tests.present import present

import pennon

SOURCES = Path(__file__).parents[2] / "python"
DECLARED = SOURCES.parent / "jvm-shim/src/main/resources/dev/pennon/spark/worker/wire.json"
LONG = {"name": "id", "type": "long", "nullable": True, "metadata": {}}


# The JVM as the worker wants to hear of it; its versions are those of this checkout.
JVM = {
    "jar": pennon.__version__,
    "protocol": hashlib.sha256(DECLARED.read_bytes()).hexdigest()[:12],
    "spark": "4.3.0",
    "driver": True,
    "language": "en",
    "cores": 2,
    "heap_bytes": 1 << 30,
    "timeout_seconds": 4,
    "temporary": tempfile.gettempdir(),
    "user": "ada",
    "settings": {"spark.master": "local[2]"},
    "retired": [],
}


def worker_arguments(jvm: dict = JVM) -> list[str]:
    """What the JVM starts its interpreter with."""
    return ["-m", "pennon.worker", "--jvm", json.dumps(jvm)]


ORDINARY: dict[str, dict[str, object]] = {
    "list_tables": {"namespace": []},
    "list_namespaces": {"namespace": []},
    "describe_namespace": {"in_tables": False},
    "create_namespace": {"properties": {}},
    "drop_namespace": {"cascade": False},
    "load_table": {"version": None, "timestamp_micros": None, "named": False},
    "create_table": {"partitioning": [], "properties": {}, "mode": "create"},
    "stage_table": {"partitioning": [], "properties": {}, "mode": "create"},
    "plan_scan": {
        "predicates": [],
        "fully_pushed": [],
        "options": {},
        "row_change": False,
        "time_zone": "UTC",
        "num_tasks": 2,
        "max_bytes": 128 << 20,
    },
    "pack_splits": {"num_tasks": 2, "max_bytes": 128 << 20, "row_keys": [], "predicates": []},
    "prune_splits": {"row_keys": [], "predicates": []},
    "read": {"ordered": False, "row_keys": None},
    "call": {"arguments": {}, "namespace": []},
    "plan_write": {
        "mode": "append",
        "predicates": [],
        "options": {},
        "query_id": "",
        "is_stream": False,
    },
    "commit_write": {"deleted": [], "reads": []},
    "abort_write": {"was_sent": True},
}
"""What a request says where a test has nothing else to say: the worker demands every field."""


def commit_identity() -> dict[str, object]:
    """A new commit, as the JVM names it."""
    return {"id": str(uuid.uuid4()), "user": "", "application": "", "query_id": "", "epoch": None}


COMMITTING = ("commit_write", "abort_write", "delete_rows")


class WorkerFailed(Exception):
    def __init__(self, error: dict) -> None:
        super().__init__(error["message"])
        self.condition = error["condition"]
        self.error = error


class Connection:
    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(str(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self.socket.sendall(kind + struct.pack("!I", len(payload)) + payload)

    def exactly(self, count: int) -> bytes:
        received = bytearray(count)
        view = memoryview(received)
        filled = 0
        while filled < count:
            got = self.socket.recv_into(view[filled:])
            if not got:
                raise ConnectionError("the worker closed the connection")
            filled += got
        return bytes(received)

    def frame(self) -> tuple[bytes, bytes]:
        header = self.exactly(5)
        kind, length = header[:1], struct.unpack("!I", header[1:])[0]
        payload = self.exactly(length)
        if kind == b"X":
            raise WorkerFailed(json.loads(payload))
        return kind, payload

    def ask_only(self, op: str, **fields: object) -> None:
        message = {"op": op, **ORDINARY.get(op, {}), **fields}
        if op in COMMITTING:
            message.setdefault("commit", commit_identity())
        self.send(b"J", json.dumps(message).encode())

    def request(self, op: str, **fields: object) -> dict:
        self.ask_only(op, **fields)
        kind, payload = self.frame()
        assert kind == b"J"
        return json.loads(payload)

    def arrow(self) -> pa.Table:
        collected = io.BytesIO()
        while True:
            kind, payload = self.frame()
            if kind == b"E":
                return pa.ipc.open_stream(collected.getvalue()).read_all()
            collected.write(payload)

    def rows(self, scan: str, split: str) -> pa.Table:
        assert self.request("read", scan=scan, split=split) == {"arrow": True}
        return self.arrow()

    def upload(self, write: str, rows: pa.Table, chunk: int = 1000) -> dict:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=500)
        self.send(
            b"J",
            json.dumps({"op": "write", "write": write}).encode(),
        )
        text = sink.getvalue()
        # A worker that refuses the rows says why and closes: nobody has to send the rest.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for start in range(0, len(text), chunk):
                self.send(b"A", text[start : start + chunk])
            self.send(b"E")
        _, payload = self.frame()
        return json.loads(payload)


class Worker:
    """A real worker process, as the JVM starts it.

    Args:
        temporary_files: Where it writes what does not fit its memory.
        settings: Spark's, beside the master.
    """

    def __init__(self, temporary_files: Path | None = None, /, **settings: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.log = Path(self.folder.name) / "log"
        named = {f"spark.{key}": value for key, value in settings.items()}
        told = {"settings": {"spark.master": "local[2]"} | named}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    *worker_arguments(JVM | told | {"temporary": self.folder.name}),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={
                    "PYTHONPATH": str(SOURCES),
                    "PATH": "/usr/bin:/bin",
                    "TMPDIR": str(temporary_files or self.folder.name),
                },
            )
        self.ready = json.loads(present(self.process.stdout).readline())
        self.path = Path(self.ready["socket"])

    def connect(self) -> Connection:
        return Connection(self.path)

    def stop(self) -> int:
        present(self.process.stdin).close()
        code = self.process.wait(10)
        present(self.process.stdout).close()
        self.folder.cleanup()
        return code


def cpu_seconds(worker: Worker) -> float:
    """What a worker's process has computed so far."""
    ticks = Path(f"/proc/{worker.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


class Driver:
    """Requests of a driver about one catalog."""

    def __init__(self, connection: Connection, root: Path, **storage: str) -> None:
        self.connection = connection
        self.catalog = {
            "name": "lance",
            "root": str(root),
            "implementation": "dir",
            "storage": storage,
            "options": {},
            "has_time": False,
            "namespace": {},
        }

    def ask(self, op: str, **fields: object) -> dict:
        return self.connection.request(op, catalog=self.catalog, **fields)

    def create(
        self, name: list[str], fields: list[dict], partitioning: Sequence[dict] = (), **more: object
    ) -> dict:
        return self.ask(
            "create_table",
            identifier=name,
            schema={"type": "struct", "fields": fields},
            partitioning=list(partitioning),
            **more,
        )

    def plan_append(self, table: dict) -> str:
        """Plan a write; what is given is uploaded with the rows."""
        planned = self.ask(
            "plan_write",
            table=table["table"],
            schema=table["schema"],
            mode="append",
            options={},
            query_id="q",
        )
        return str(planned["write"])

    def insert(self, table: dict, rows: pa.Table) -> int:
        write = self.plan_append(table)
        reply = self.connection.upload(write, rows)
        return self.ask("commit_write", write=write, staged=reply["staged"])["snapshot"]

    def scan(
        self, table: dict, predicates: Sequence[str] = (), schema: dict | None = None
    ) -> tuple[dict, pa.Table]:
        plan = self.ask(
            "plan_scan",
            table=table["table"],
            predicates=list(predicates),
            schema=schema or table["schema"],
        )
        self.ask("list_splits", plan=plan["plan"], schema=schema or table["schema"])
        return plan, self.connection.arrow()

    def select(
        self, table: dict, predicates: Sequence[str] = (), schema: dict | None = None
    ) -> pa.Table:
        plan, splits = self.scan(table, predicates, schema)
        parts = [self.connection.rows(plan["scan"], split) for split in splits["split"].to_pylist()]
        if not parts:
            return pa.table({})
        kinds = [field["type"] for field in (schema or table["schema"])["fields"]]
        return as_declared(pa.concat_tables(parts), kinds)


def as_declared(rows: pa.Table, kinds: Sequence[object]) -> pa.Table:
    """Give short decimals their type, as the JVM does: their unscaled values are sent."""
    for place, kind in enumerate(kinds):
        if str(kind).startswith("decimal") and rows.schema.field(place).type == pa.int64():
            precision, scale = map(int, str(kind)[len("decimal(") : -1].split(","))
            values = [
                None if value is None else Decimal(value).scaleb(-scale)
                for value in rows.column(place).to_pylist()
            ]
            column = pa.array(values, pa.decimal128(precision, scale))
            rows = rows.set_column(place, rows.column_names[place], column)
    return rows


def field(name: str, kind: object, *, nullable: bool = True, **metadata: str) -> dict:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def transform(function: str, *arguments: int | str) -> dict:
    return {
        "function": function,
        "arguments": [
            {"literal": name} if isinstance(name, int) else {"column": name.split(".")}
            for name in arguments
        ],
    }


def limits(*, one_task: int = 0, one_executor: int = 0, replicated: int = 0) -> dict[str, str]:
    """State the limits of the execution in bytes, as a session does."""
    stated = {"oneTask": one_task, "oneExecutor": one_executor, "replicated": replicated}
    prefix = "spark.sql.catalog.lance.execution."
    return {f"{prefix}{name}Bytes": str(limit) for name, limit in stated.items()}


IN_SPARK = {"spark.sql.catalog.lance.execution": "spark"}

DERIVATION = {
    "parallelism": 2,
    "max_bytes": 1 << 27,
    "ansi": True,
    "time_zone": "UTC",
    "zone_offsets": [2129, 0],
    "slots": 2,
    "is_write": False,
    "rewrites": True,
    "settings": limits(),
}
"""What a request for derived keys says of the session."""


def joined(left: int, right: int, kind: str, condition: str | None = "(`c1` = `c11`)") -> dict:
    """Join on columns 1 and 11."""
    return {
        "node": "join",
        "left": left,
        "right": right,
        "type": kind,
        "text": "c1 = c11",
        "compared": [compared(1, 11)],
        "null_safe": False,
        "condition": condition,
        "broadcast": None,
        "exists": None,
    }


def scanned(columns: Mapping[int, str]) -> list[dict]:
    """The columns of a scan that are no nested ones, by their attributes."""
    return [{"attribute": at, "name": name, "type": None} for at, name in columns.items()]


def called(attribute: int, name: str, argument: str, argument_type: str, kind: str) -> dict:
    """A function of an aggregate."""
    call = {"attribute": attribute, "name": name, "argument": argument, "others": []}
    return call | {"argument_type": argument_type, "type": kind}


def compared(left: int, right: int) -> dict:
    """Compare a BIGINT column of each side of a join, as the rule of the JVM tells it."""
    sides = {"left": f"`c{left}`", "right": f"`c{right}`"}
    return {side: {"column": c, "types": ["long"], "utc": True} for side, c in sides.items()}
