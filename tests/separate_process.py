"""Servers and clusters of a test's own: started as a user starts them, always ended."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_OUR_OWN = {"PYTHONPATH": str(ROOT / "python"), "SPARK_LOCAL_IP": "127.0.0.1"}
ENVIRONMENT = os.environ | _OUR_OWN


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Find ports that nobody listens on, each another one: all are held until the last is found."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def run_script(script: str, *arguments: str, timeout_seconds: float = 300) -> str:
    """Run Python in a fresh process and return what it printed; its errors fail the test."""
    return _run(["-c", script, *arguments], timeout_seconds)


def run_module(module: str, *arguments: str, timeout_seconds: float = 600) -> str:
    """Run a module of the tests in a fresh process and return what it printed, as above."""
    return _run(["-m", module, *arguments], timeout_seconds)


def _run(arguments: list[str], timeout_seconds: float) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_seconds,
        # Read now: a test may have changed it.
        env=os.environ | _OUR_OWN,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@contextlib.contextmanager
def serving(kind: str, root: Path, timeout_seconds: float = 240) -> Iterator[int]:
    """Run ``pennon serve`` and give its port; end it with the signal that a service gets."""
    port = free_port()
    command = [sys.executable, "-m", "pennon.cli", "serve", kind]
    command += ["--root", str(root), "--port", str(port), "--master", "local[2]"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT
    )
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    try:
        seen = _await_ready(process, lines, time.monotonic() + timeout_seconds)
        assert str(port) in seen[-1], "".join(seen)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)


def _await_ready(
    process: subprocess.Popen[str], lines: queue.Queue[str], deadline: float
) -> list[str]:
    seen: list[str] = []
    while not (seen and seen[-1].startswith("Ready")):
        try:
            seen.append(lines.get(timeout=1))
        except queue.Empty:
            assert process.poll() is None, "".join(seen)
            assert time.monotonic() < deadline, "".join(seen)
    return seen
