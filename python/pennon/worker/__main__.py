"""Starts the worker: opens the socket, then reports it in one line of JSON on standard output.

The process ends with its JVM: standard input is a pipe that only the JVM holds, so it ends even
when the JVM is killed. Standard error is the log.

Arrow's datasets are imported without pandas, which no worker needs: ``pyarrow.dataset`` makes a
scalar while it is imported, and for that looks for pandas: where it is installed, as beside most
Sparks, half of a worker's start was the import of pandas.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pennon.caching import limit_caches, log_figures
from pennon.errors import PackageVersion, PennonError
from pennon.worker.folders import (
    remove_abandoned_files,
    remove_abandoned_sockets,
    socket_in_new_folder,
    temporary_files_in_own_folder,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from pennon.worker.handshake import Jvm
    from pennon.worker.server import Server

__all__ = ["import_arrow"]


class _WithoutPandas:
    """Says that pandas is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse pandas, and leave all else to others."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def import_arrow() -> None:
    """Import ``pyarrow.dataset``; what comes later finds pandas where it asks for it."""
    refusing = _WithoutPandas()
    sys.meta_path.insert(0, refusing)
    try:
        import_module("pyarrow.dataset")
    finally:
        sys.meta_path.remove(refusing)


# Oldest version that works, first that does not, and why there is a bound: pyproject.toml.
_NEEDED = {"pylance": ((14, 0), (14, 1)), "datafusion": ((54, 1), (55, 0))}

_LOG = logging.getLogger(__name__)
_ABANDONED = 3
_LIFE_SECONDS = 10.0
# What planning a query makes is garbage at its end; by Python's own limit of 700 objects it is
# looked through some forty times before.
_OBJECTS_OF_A_PLAN = 20_000
_SAYING = threading.Lock()


def main() -> int:
    """Run the worker until its standard input ends."""
    arguments = argparse.ArgumentParser(prog="pennon.worker")
    arguments.add_argument("--jvm", required=True, help="what started the worker, as JSON")
    arguments.add_argument("--log-level", default=os.environ.get("PENNON_LOG_LEVEL", "INFO"))
    options = arguments.parse_args()
    faulthandler.enable()
    # Imports make hundreds of thousands of objects that stay: looking through them for garbage
    # takes a fifth of a start. `_warm_up` enables it again.
    gc.disable()
    # Ctrl-C at a terminal reaches every process there. A shell of Spark cancels its query by it and
    # lives on: so does the worker, which ends with its JVM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The JVM reads the ready line from the real standard output; nothing else may print there.
    ready = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        check_packages()
        import_arrow()
        jvm = _meet(options.jvm)
        socket = socket_in_new_folder(Path(jvm.temporary))
        files = temporary_files_in_own_folder()
        server = _server(socket, options.log_level)
        from pennon.worker.handshake import ready as ready_line  # noqa: PLC0415 - as in _meet
    except PennonError as error:
        failure = {
            "condition": error.condition,
            "message": str(error),
            "parameters": error.parameters,
            "sqlState": error.sql_state,
        }
        _say(ready, {"ready": False, "error": failure})
        return 1
    with contextlib.suppress(_Terminated):
        signal.signal(signal.SIGTERM, _terminate)
        threading.Thread(target=server.serve, daemon=True).start()
        _say(ready, ready_line(metadata_version(), socket))
        threading.Thread(target=_end_when_retired, args=(server, ready, files), daemon=True).start()
        threading.Thread(target=_tell_life, args=(ready, jvm.timeout_seconds), daemon=True).start()
        threading.Thread(target=_warm_up, args=(socket, files, jvm), daemon=True).start()
        _wait_for_end_of_input()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server.close()
    with contextlib.suppress(OSError):
        socket.parent.rmdir()
    log_figures()
    logging.shutdown()
    _remove(files)
    # Threads inside Lance may still run a scan that nobody wants any more.
    os._exit(0)


def check_packages() -> None:
    """Check that the packages with a measured bound are there in a version that works.

    Raises:
        PackageVersion: One is missing or of a wrong version.
    """
    for package, (oldest, first_wrong) in _NEEDED.items():
        try:
            installed = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed = None
        version = tuple(int(part) for part in (installed or "0").split(".")[:2] if part.isdigit())
        if installed is None or not oldest <= version < first_wrong:
            bounds = f">={_dotted(oldest)},<{_dotted(first_wrong)}"
            raise PackageVersion(
                interpreter=sys.executable,
                actual=f"no {package}" if installed is None else f"{package} {installed}",
                pennon=metadata_version(),
                needed=f"{package} {bounds}",
                install=f"'{package}{bounds}'",
            )


def metadata_version() -> str:
    """Give Pennon's version without importing what is slow."""
    from pennon import __version__  # noqa: PLC0415 - resolved lazily there

    return __version__


def _meet(text: str) -> Jvm:
    """Refuse a JVM of another version, and take on what it says of itself."""
    # Imported after the check, too: they import Arrow and Lance.
    from pennon.caching.lance_sessions import limit_sessions  # noqa: PLC0415
    from pennon.execution.memory import pool_bytes  # noqa: PLC0415
    from pennon.starting_jvm import started_by  # noqa: PLC0415
    from pennon.worker.freed_memory import keep_some, limit_arenas  # noqa: PLC0415
    from pennon.worker.handshake import jvm_of  # noqa: PLC0415

    jvm = jvm_of(text, metadata_version())
    started_by(jvm.starting)
    pool = pool_bytes()
    limit_arenas(pool)
    keep_some(pool)
    limit_sessions(pool)
    limit_caches(pool)
    return jvm


def _server(path: Path, log_level: str) -> Server:
    # Imported after the check, so that a wrong version is named and not met as a traceback.
    from pennon.worker.server import Server  # noqa: PLC0415
    from pennon.worker.wire.framing import BlottingFormatter  # noqa: PLC0415

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(BlottingFormatter("%(levelname)s %(threadName)s %(name)s: %(message)s"))
    logging.basicConfig(level=log_level.upper(), handlers=[handler])
    return Server(path)


def _warm_up(socket: Path, files: Path | None, jvm: Jvm) -> None:
    """Import what the first query needs while the JVM is still busy with itself; tidy up."""
    from pennon.worker.requests.dispatch import driver_handlers  # noqa: PLC0415

    try:
        if jvm.driver:
            driver_handlers()
            gc.set_threshold(_OBJECTS_OF_A_PLAN, *gc.get_threshold()[1:])
        else:
            import pennon.execution.engine  # noqa: F401, PLC0415
    finally:
        # Modules and classes stay for ever: without this, planning pays for their being looked
        # through. The little that is garbage among them is not worth the looking either.
        gc.freeze()
        gc.enable()
    remove_abandoned_sockets(socket)
    if files is not None:
        remove_abandoned_files(files)


def _say(ready: object, message: dict[str, object]) -> None:
    with _SAYING:
        print(json.dumps(message), file=ready, flush=True)  # type: ignore[call-overload]


def _tell_life(ready: object, timeout_seconds: int) -> None:
    """Say that the process lives, several times within the time after which it counts as hung."""
    while timeout_seconds:
        time.sleep(min(_LIFE_SECONDS, timeout_seconds / 4))
        _say(ready, {"alive": True})


def _end_when_retired(server: Server, ready: object, files: Path | None) -> None:
    server.wait_until_retired(lambda: _say(ready, {"retired": True}))
    _LOG.warning("the worker ends: it computes only what nobody waits for any more")
    server.close()
    logging.shutdown()
    _remove(files)
    os._exit(_ABANDONED)


def _remove(files: Path | None) -> None:
    if files is not None:
        shutil.rmtree(files, ignore_errors=True)


class _Terminated(Exception):
    """The JVM ends the process at once, at its own end."""


def _terminate(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise _Terminated


def _wait_for_end_of_input() -> None:
    while os.read(0, 4096):
        pass


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


if __name__ == "__main__":
    sys.exit(main())
