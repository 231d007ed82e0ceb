"""``pennon serve``: Spark's Thrift and Connect servers with Pennon's catalog configured.

A client needs nothing of Pennon: beeline, a JDBC driver or any Thrift client, or Spark Connect's.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from pennon import session
from pennon.catalog.configured_catalog import setting_name
from pennon.errors import ServerDidNotStart, SparkNotInstalled
from pennon.java_runtime import BOUNDS
from pennon.settings import DEFAULT_NAMESPACE

START_TIMEOUT_SECONDS = 180
_CLASS_PATH = "spark.driver.extraClassPath"


@dataclass(frozen=True, slots=True)
class Server:
    """A server of Spark: its class, and how host and port are passed to it.

    Args:
        name: As the user names it.
        main_class: What ``spark-submit`` runs.
        default_port: The port that clients of this kind try by themselves.
        address: What a client connects to, over ``{host}`` and ``{port}``.
    """

    name: str
    main_class: str
    default_port: int
    address: str


THRIFT = Server(
    "thrift",
    "dev.pennon.spark.thrift.ThriftServer",
    10000,
    "beeline -u jdbc:hive2://{host}:{port}",
)
CONNECT = Server(
    "connect",
    "org.apache.spark.sql.connect.service.SparkConnectServer",
    15002,
    "SparkSession.builder.remote('sc://{host}:{port}')",
)
SERVERS: Mapping[str, Server] = {server.name: server for server in (THRIFT, CONNECT)}


@dataclass(frozen=True, slots=True)
class Serving:
    """One server as the user asked for it.

    Args:
        server: Which server.
        root: The root of the catalog.
        name: The catalog's name in SQL.
        host: The address to bind; only this machine by default.
        port: The port, or None for the server's default.
        master: Spark's master, or None for what Spark's own settings say.
        conf: Further settings of Spark.
        catalog: Where names without a catalog are, or None for the catalog served.
    """

    server: Server
    root: str
    name: str = "lance"
    host: str = "127.0.0.1"
    port: int | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    catalog: str | None = None

    @property
    def chosen_port(self) -> int:
        """The port that is bound."""
        return self.server.default_port if self.port is None else self.port

    def command(self, scratch: Path) -> list[str]:
        """Write the command that starts the server.

        Args:
            scratch: A private folder; the settings go into a file there, so that no storage
                option shows in a list of processes.
        """
        conf = {"spark.log.level": "WARN", **_server_conf(self, scratch), **self.conf}
        if self.server is THRIFT:
            # A client that leaves closes the loader of spark.jars: what it has not loaded by then
            # is lost to the server.
            places = (self.conf.get(_CLASS_PATH), str(session.find_jar()))
            conf[_CLASS_PATH] = os.pathsep.join(filter(None, places))
        conf = session.spark_conf(self.root, self.name, present=conf) | conf
        properties = scratch / "spark.properties"
        properties.touch(mode=0o600)
        lines = (f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in conf.items())
        properties.write_text("".join(lines), encoding="utf-8")
        arguments = [str(_spark_submit()), "--class", self.server.main_class]
        arguments += ["--properties-file", str(properties), "--load-spark-defaults"]
        if self.master is not None:
            arguments += ["--master", self.master]
        return [*arguments, "spark-internal"]


def serve(serving: Serving) -> int:
    """Start the server, say when it is ready, and stay until it ends.

    Ctrl-C and SIGTERM end the server, and its workers with it.

    Args:
        serving: What to serve.

    Returns:
        The server's exit code; 0 after Ctrl-C or SIGTERM.

    Raises:
        ServerDidNotStart: It ended, or did not answer, before it was ready.
        PennonError: Java, pyspark or the jar is missing or of a wrong version.
    """
    with tempfile.TemporaryDirectory(prefix="pennon-serve-") as scratch:
        command = serving.command(Path(scratch))
        if _is_open(serving.host, serving.chosen_port):
            raise ServerDidNotStart(
                server=serving.server.name,
                problem=f"port {serving.chosen_port} of {serving.host} is taken",
            )
        process = subprocess.Popen(command, cwd=scratch)  # noqa: S603 - made above
        stopped = _stop_with(process)
        try:
            _await_ready(serving, process)
            address = serving.server.address.format(host=serving.host, port=serving.chosen_port)
            print(f"Ready. Connect with: {address}", flush=True)
            code = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    return 0 if stopped else code


def _server_conf(serving: Serving, scratch: Path) -> dict[str, str]:
    begin = {
        "spark.sql.defaultCatalog": serving.catalog or serving.name,
        # A client of JDBC or Hive that names no other begins with USE default.
        setting_name(serving.name, DEFAULT_NAMESPACE.name): "default",
    }
    if serving.server is CONNECT:
        return begin | {
            "spark.connect.grpc.binding.address": serving.host,
            "spark.connect.grpc.binding.port": str(serving.chosen_port),
            # Else a client prints the server's stack below the message of every error.
            "spark.sql.connect.serverStacktrace.enabled": "false",
        }
    return begin | {
        "spark.hadoop.hive.server2.thrift.bind.host": serving.host,
        "spark.hadoop.hive.server2.thrift.port": str(serving.chosen_port),
        # The server always opens a Hive metastore: one in memory leaves no files behind.
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:pennon;create=true",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }


def _spark_submit() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkNotInstalled(**BOUNDS)
    return Path(spec.origin).parent / "bin" / "spark-submit"


def _stop_with(process: subprocess.Popen[bytes]) -> Sequence[int]:
    """End the server when this process receives a signal to end; the list holds those that came."""
    came: list[int] = []

    def stop(number: int, _: object) -> None:
        came.append(number)
        process.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return came


def _await_ready(serving: Serving, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not _is_open(serving.host, serving.chosen_port):
        code = process.poll()
        if code is not None:
            raise ServerDidNotStart(
                server=serving.server.name,
                problem=f"it ended with code {code} before it was ready",
            )
        if time.monotonic() > deadline:
            raise ServerDidNotStart(
                server=serving.server.name,
                problem=f"it was not ready after {START_TIMEOUT_SECONDS} seconds",
            )
        time.sleep(0.2)


def _is_open(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0
