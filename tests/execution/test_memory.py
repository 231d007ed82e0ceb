"""The memory of a worker's queries, from what its JVM was given and what the machine has."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from datafusion import SessionConfig
from tests.present import present

from pennon import starting_jvm
from pennon.errors import MemorySettingInvalid
from pennon.execution import memory
from pennon.execution.engine import ProcessPool
from pennon.execution.memory import executor_pool_bytes, pool_bytes
from pennon.starting_jvm import StartingJvm, started_by

GIB = 1 << 30
IDLE = 256 << 20


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("PENNON_MEMORY", raising=False)
    monkeypatch.setattr(memory, "limit_bytes", lambda: 64 * GIB)
    yield
    monkeypatch.delenv("PENNON_MEMORY", raising=False)
    started_by(None)


def executor(master: str, **settings: str) -> StartingJvm:
    names = {f"spark.executor.{name}": value for name, value in settings.items()}
    return StartingJvm(
        is_driver=False, cores=16, heap_bytes=4 * GIB, settings={"spark.master": master} | names
    )


def test_in_a_container_it_is_half_of_what_an_idle_worker_leaves_of_the_overhead() -> None:
    started_by(executor("yarn", memoryOverhead="6g"))
    assert pool_bytes() == (6 * GIB - IDLE) // 2
    started_by(executor("k8s://https://api", memoryOverhead="2048"))
    assert pool_bytes() == 896 << 20
    started_by(executor("yarn", memoryOverhead="128m"))
    assert pool_bytes() == 64 << 20


def test_in_a_container_without_a_setting_it_is_of_sparks_own_overhead() -> None:
    started_by(executor("yarn"))
    assert pool_bytes() == (int(4 * GIB * 0.1) - IDLE) // 2


def test_executors_of_one_machine_divide_it() -> None:
    started_by(executor("spark://host:7077"))
    alone = pool_bytes()
    started_by(executor("spark://host:7077", cores="4"))
    assert pool_bytes() * 4 < alone
    started_by(executor("local-cluster[2,1,1024]"))
    assert pool_bytes() * 3 < alone


def test_a_driver_plans_with_what_its_executors_have() -> None:
    settings = {"spark.master": "yarn", "spark.executor.memoryOverhead": "8g"}
    started_by(StartingJvm(is_driver=True, cores=2, heap_bytes=GIB, settings=settings))
    assert (pool_bytes(), executor_pool_bytes()) == (
        (384 << 20) - IDLE >> 1,
        (8 * GIB - IDLE) // 2,
    )


def set_to(retired: int, pool: str) -> None:
    """Start a worker with a stated pool beside one that retired."""
    settings = {"spark.master": "local[2]", "spark.pennon.worker.memory": pool}
    started_by(StartingJvm(True, 2, GIB, settings, (retired,)))


def test_a_worker_leaves_to_a_retired_one_what_it_holds() -> None:
    held = 256 << 20
    script = f"rows = bytearray({held}); print(flush=True); input()"
    command = [sys.executable, "-c", script, "pennon.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as retired:
        assert present(retired.stdout).readline() == b"\n"
        set_to(retired.pid, "1g")
        assert held < GIB - pool_bytes() < held + (64 << 20)
        # One that holds more than all of it leaves what no query can do without, and no more.
        set_to(retired.pid, "300m")
        assert pool_bytes() == 64 << 20
        set_to(retired.pid, "32m")
        assert pool_bytes() == 32 << 20
        set_to(retired.pid, "1g")
        # What is planned does not depend on the moment.
        assert executor_pool_bytes() == GIB
        pool = ProcessPool()
        query = pool.context(SessionConfig())
        while_both_are_there = pool.size_bytes
        retired.communicate(b"\n")
    assert pool_bytes() == GIB
    other = pool.context(SessionConfig())
    assert pool.size_bytes == while_both_are_there < GIB
    del query, other
    pool.context(SessionConfig())
    assert pool.size_bytes == GIB


def test_a_setting_overrides_what_is_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENNON_MEMORY", "8g")
    assert pool_bytes() == executor_pool_bytes() == 8 * GIB
    stronger = {"spark.master": "yarn", "spark.pennon.worker.memory": "512m"}
    started_by(StartingJvm(is_driver=True, cores=2, heap_bytes=GIB, settings=stronger))
    assert pool_bytes() == executor_pool_bytes() == 512 << 20


@pytest.mark.parametrize("value", ["8x", "much", "0", "-1g", "1.5g"])
def test_a_setting_that_is_no_memory_is_an_error(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("PENNON_MEMORY", value)
    with pytest.raises(MemorySettingInvalid, match="PENNON_MEMORY"):
        pool_bytes()


def test_the_smallest_cgroup_around_the_process_is_the_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "cgroup"
    own.write_text("0::/pod/container\n")
    (tmp_path / "pod" / "container").mkdir(parents=True)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "pod" / "memory.max").write_text(f"{GIB}\n")
    (tmp_path / "pod" / "container" / "memory.max").write_text("max\n")
    monkeypatch.undo()
    monkeypatch.setattr(starting_jvm, "_CGROUPS", tmp_path)
    monkeypatch.setattr(starting_jvm, "_OWN_CGROUPS", own)
    assert starting_jvm.limit_bytes() == GIB


_HEAPS = """
import ctypes, sys, threading
import pennon.worker.freed_memory as freed
assert freed.limit_arenas(int(sys.argv[1])) == int(sys.argv[2])
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(24)
def allocate():
    together.wait()
    for _ in range(200):
        assert libc.malloc(ctypes.c_size_t(4000))
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(24)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="arenas are glibc's")
@pytest.mark.parametrize(("pool", "arenas"), [(64 << 20, 2), (512 << 20, 2), (GIB, 4)])
def test_threads_share_as_many_arenas_as_the_pool_is_worth(pool: int, arenas: int) -> None:
    command = [sys.executable, "-c", _HEAPS, str(pool), str(arenas)]
    environment = {**os.environ}
    environment.pop("MALLOC_ARENA_MAX", None)
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.count("<heap nr=") == arenas


_KEPT = """
import ctypes, sys
import pennon.worker.freed_memory as freed
MIB = 1 << 20
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def resident():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * 4096 // MIB
def used():
    pieces = [ctypes.c_void_p(libc.malloc(ctypes.c_size_t(MIB))) for _ in range(48)]
    for piece in pieces: libc.memset(piece, 1, MIB)
    most = resident()
    for piece in reversed(pieces): libc.free(piece)
    return most
print(freed.keep_some(int(sys.argv[1])) // MIB)
most = used()
kept = resident()
freed.give_back()
print(most - kept, kept - resident())
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="thresholds are glibc's")
@pytest.mark.parametrize(("pool", "most"), [(64 << 20, 8), (512 << 20, 64), (GIB, 64)])
def test_what_was_freed_is_kept_up_to_a_limit_and_given_back_by_the_idle(
    pool: int, most: int
) -> None:
    environment = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    command = [sys.executable, "-c", _KEPT, str(pool)]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    limit, freed_at_once, freed_idle = map(int, told.stdout.split())
    assert limit == most
    assert freed_at_once + freed_idle > 40
    # Of less than that glibc gives back what nothing else stands behind.
    assert freed_at_once < 8 or most < 48
