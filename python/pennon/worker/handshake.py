"""What a JVM and its worker exchange before the first request.

Both compare the versions of jar and package and the digests of the messages that they know, and
each refuses a difference with both in its words: better at the start than at the first message
that the other does not know.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pennon.errors import MalformedMessage, VersionsDiffer
from pennon.java_runtime import check_spark_version
from pennon.starting_jvm import StartingJvm
from pennon.worker.wire.json_fields import decode
from pennon.worker.wire.protocol import PROTOCOL

__all__ = ["Jvm", "jvm_of", "ready"]


@dataclass(frozen=True, slots=True)
class Jvm:
    """The JVM that started the worker.

    Args:
        jar: Version of the jar.
        protocol: Digest of the messages that the jar knows, as ``PROTOCOL``.
        spark: Version of Spark.
        driver: Whether it is the driver's.
        language: The language of its locale, whose letters change their case by it.
        cores: Processors that it may use.
        heap_bytes: Largest size of its heap.
        timeout_seconds: After so long a silence it takes the worker for hung; 0 for never.
        temporary: Its folder for temporary files.
        user: Who runs the application.
        settings: The settings of Spark that say how much memory there is, and the application's id.
        retired: The ids of earlier workers that still work on what others wait for.
    """

    jar: str
    protocol: str
    spark: str
    driver: bool
    language: str
    cores: int
    heap_bytes: int
    timeout_seconds: int
    temporary: str
    user: str
    settings: Mapping[str, str]
    retired: tuple[int, ...]

    @property
    def starting(self) -> StartingJvm:
        """What commits, the memory of queries and the meaning of some functions depend on."""
        return StartingJvm(
            is_driver=self.driver,
            cores=self.cores,
            heap_bytes=self.heap_bytes,
            settings=self.settings,
            retired=self.retired,
            user=self.user,
            language=self.language,
            spark=self.spark,
        )


def jvm_of(text: str, version: str) -> Jvm:
    """Read the worker's argument ``--jvm``, and refuse a JVM of another version.

    Args:
        text: The argument.
        version: Version of this package.

    Raises:
        VersionsDiffer: The jar is of another version.
        SparkVersionNotSupported: Spark is.
        MalformedMessage: It is no description of a JVM.
    """
    try:
        stated = json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedMessage(why="the argument --jvm is not JSON") from error
    if not isinstance(stated, dict):
        raise MalformedMessage(why="the argument --jvm is no JSON object")
    jar, protocol = stated.get("jar", "unknown"), stated.get("protocol", "unknown")
    if (jar, protocol) != (version, PROTOCOL):
        raise VersionsDiffer(
            jar=f"version {jar} (protocol {protocol})",
            package=f"version {version} (protocol {PROTOCOL})",
            interpreter=sys.executable,
        )
    jvm = decode(Jvm, stated)
    check_spark_version(jvm.spark)
    return jvm


def ready(version: str, socket: Path) -> dict[str, object]:
    """Give the line by which the JVM knows that the worker listens, where, and its version.

    Args:
        version: Version of this package.
        socket: Path of its socket.

    Example:
        >>> sorted(ready("0.1.0", Path("/tmp/pennon-worker-a/worker.sock")))
        ['pid', 'protocol', 'python', 'ready', 'socket', 'version']
    """
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "ready": True,
        "pid": os.getpid(),
        "socket": str(socket),
        "version": version,
        "protocol": PROTOCOL,
        "python": python,
    }
