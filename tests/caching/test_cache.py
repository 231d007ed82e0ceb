"""The one cache: what is kept, for how long, and under which key."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.manifest.handmade import NOWHERE, SALES_LATE, appendix_c
from tests.worker.worker_client import JVM

from pennon.caching import Cache, TableKey, TextCache, limit_caches, log_figures, storage_identity
from pennon.caching.cache import _ENTRIES, _LOCK, _Budget
from pennon.catalog.configured_catalog import Catalog
from pennon.draft import open_snapshot
from pennon.leaf import open_leaf
from pennon.manifest import Snapshot
from pennon.worker.plans.plan_cache import find_plan, plan_of
from pennon.worker.wire.tokens import TableToken

CREDENTIAL = "hunter2-and-more"


def key(version: int) -> TableKey:
    return TableKey("/lake/t", version, "1f00")


def test_threads_that_ask_for_one_value_have_it_made_once() -> None:
    cache: Cache[object] = Cache("objects", max_bytes=100, weigh=lambda _: 1)
    made: list[object] = []

    def make() -> object:
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda _: cache.find(key(1), make), range(8)))
    assert len(made) == 1
    assert {id(value) for value in values} == {id(made[0])}


class ToldLock:
    """A lock that tells who has to wait for it."""

    def __init__(self, is_waited_for: threading.Event) -> None:
        self._lock = threading.Lock()
        self._is_waited_for = is_waited_for

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._is_waited_for.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.parametrize("operation", ["keep", "find", "find a kept one", "peek", "forget"])
def test_no_thread_changes_the_values_while_another_walks_over_them(operation: str) -> None:
    """The walk is held until the other waits for the lock or, without one, has done its work."""
    cache: Cache[str] = Cache("texts", max_bytes=100, weigh=len)
    walking, met = threading.Event(), threading.Event()
    cache._lock = ToldLock(met)  # type: ignore[assignment]
    for version in (1, 2, 3):
        cache.keep(key(version), "four")

    def is_gone(asked: TableKey) -> bool:
        walking.set()
        assert met.wait(30)
        return asked == key(2)

    def change() -> None:
        assert walking.wait(30)
        match operation:
            case "keep":
                cache.keep(key(4), "four")
            case "find":
                cache.find(key(4), lambda: "four")
            case "find a kept one":
                cache.find(key(1), lambda: "another")
            case "peek":
                assert cache.peek(key(1)) == "four"
            case "forget":
                cache.forget(lambda asked: asked == key(3))
        met.set()

    with ThreadPoolExecutor(2) as pool:
        changed = pool.submit(change)
        pool.submit(cache.forget, is_gone).result()
        changed.result()
    figures = cache.figures
    assert cache.peek(key(2)) is None
    assert (
        figures.num_bytes
        == 4 * figures.entries
        == {"keep": 12, "find": 12, "forget": 4}.get(operation, 8)
    )


def test_who_waited_for_a_value_that_could_not_be_made_makes_it_himself() -> None:
    cache: Cache[str] = Cache("texts", max_bytes=100, weigh=len)
    entered, failing = threading.Event(), threading.Event()

    def fail() -> str:
        entered.set()
        failing.wait(10)
        raise LookupError

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.find, key(1), fail)
        entered.wait(10)
        second = pool.submit(cache.find, key(1), lambda: "made")
        failing.set()
        assert second.result() == "made"
        with pytest.raises(LookupError):
            first.result()


def test_the_values_used_longest_ago_go_and_one_that_is_too_heavy_is_not_kept() -> None:
    cache: Cache[str] = Cache("texts", max_bytes=10, weigh=len)
    for version in (1, 2):
        cache.find(key(version), lambda: "four")
    cache.find(key(1), lambda: "other")
    cache.find(key(3), lambda: "five5")
    assert cache.peek(key(1)) == "four"
    assert cache.peek(key(2)) is None
    assert cache.find(key(4), lambda: "x" * 11) == "x" * 11
    assert cache.peek(key(4)) is None
    assert (cache.figures.entries, cache.figures.num_bytes) == (2, 9)


@pytest.fixture
def budget() -> Iterator[Callable[[int], None]]:
    """Sets what all caches of the process may hold together, in bytes."""
    yield lambda num_bytes: limit_caches(4 * num_bytes)
    _Budget.max_bytes = None


def held_bytes() -> int:
    with _LOCK:
        return sum(entries.num_bytes for entries in _ENTRIES)


def test_all_caches_together_hold_no_more_than_the_budget(budget: Callable[[int], None]) -> None:
    budget(1_000)
    caches = [Cache[str](f"texts {number}", max_bytes=600, weigh=len) for number in range(4)]

    def fill(seed: int) -> None:
        drawn = random.Random(seed)  # noqa: S311
        for _ in range(500):
            one, version = drawn.choice(caches), drawn.randrange(50)
            one.find(key(version), lambda: "x" * drawn.randrange(1, 200))
            if drawn.random() < 0.1:
                one.forget(lambda asked, gone=version: asked.version == gone)  # type: ignore[misc]
            assert held_bytes() <= 1_000

    fill(0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill, range(1, 5)))
    assert held_bytes() > 700
    for one in caches:
        entries = one._entries
        assert entries.num_bytes == sum(entry.num_bytes for entry in entries.by_key.values())


def test_the_value_used_longest_ago_in_any_cache_goes_first(budget: Callable[[int], None]) -> None:
    budget(12)
    letters: Cache[str] = Cache("letters", max_bytes=100, weigh=len)
    digits: Cache[str] = Cache("digits", max_bytes=100, weigh=len)
    letters.keep(key(1), "abcd")
    digits.keep(key(1), "1234")
    letters.keep(key(2), "efgh")
    assert letters.peek(key(1)) == "abcd"
    digits.keep(key(2), "5678")
    assert [one.peek(key(at)) for one in (letters, digits) for at in (1, 2)] == [
        "abcd",
        "efgh",
        None,
        "5678",
    ]
    assert (letters.figures.evictions, digits.figures.evictions) == (0, 1)


def test_a_smaller_budget_evicts_and_a_share_shrinks_with_it(
    budget: Callable[[int], None],
) -> None:
    budget(1_000)
    whole: Cache[str] = Cache("texts", max_bytes=400, weigh=len)
    part: Cache[str] = Cache("rows", max_bytes=400, weigh=len, share=0.25)
    for version in range(20):
        part.keep(key(version), "x" * 50)
        whole.keep(key(version), "x" * 20)
    assert (whole.figures.num_bytes, part.figures.num_bytes) == (400, 250)
    budget(200)
    assert held_bytes() <= 200
    assert part.figures.num_bytes <= part.figures.max_bytes == 50
    assert whole.peek(key(19)) is not None
    assert whole.find(key(20), lambda: "x" * 201) == "x" * 201
    assert whole.peek(key(20)) is None


@pytest.mark.slow
def test_a_worker_with_a_small_pool_has_small_caches() -> None:
    jvm = JVM | {"settings": {"spark.master": "local[2]", "spark.pennon.worker.memory": "32m"}}
    script = """if True:
        import sys
        from pennon.caching.cache import _CACHES
        from pennon.worker.__main__ import _meet
        _meet(sys.argv[1])
        import pennon.worker.plans.plan_cache
        print(*sorted({one.figures.max_bytes for one in _CACHES if one.name in sys.argv[2:]}))
        """
    names = ("plans", "partition indexes", "rows of small leaves")
    command = [sys.executable, "-c", script, json.dumps(jvm), *names]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == [str(2 << 20), str(8 << 20)]


def test_the_log_tells_the_figures(caplog: pytest.LogCaptureFixture) -> None:
    cache: Cache[str] = Cache("letters of a test", max_bytes=10, weigh=len)
    cache.find(key(1), lambda: "four")
    cache.find(key(1), lambda: "four")
    with caplog.at_level(logging.INFO):
        log_figures()
    assert "cache of letters of a test: 1 of 4 bytes (at most 10), 1 hits, 1 misses" in caplog.text


def test_a_key_holds_no_storage_option(tmp_path: Path) -> None:
    made = appendix_c(tmp_path)
    snapshot = open_snapshot(made.location, None, None, {"aws_secret_access_key": CREDENTIAL})
    assert CREDENTIAL not in repr(snapshot.key)
    assert snapshot.key != open_snapshot(made.location).key


def test_a_session_opens_leaves_with_its_own_credentials(tmp_path: Path) -> None:
    snapshot = Snapshot.open(appendix_c(tmp_path).location)
    leaves = {row["object_id"]: row for row in snapshot.leaves().table.to_pylist()}
    for leaf in leaves.values():
        for credentials in ("first", "second", "rotated"):
            options = {"aws_secret_access_key": credentials}
            dataset = open_leaf(
                snapshot.location, leaf["location"], leaf["read_version"], options, "identity"
            )
            stated = dataset.initial_storage_options or {}
            assert stated["aws_secret_access_key"] == credentials
    assert leaves[NOWHERE]["read_version"] == 2
    assert leaves[SALES_LATE]["read_version"] is None


def test_a_session_plans_with_its_own_credentials(tmp_path: Path) -> None:
    location = appendix_c(tmp_path).location
    snapshot = Snapshot.open(location)
    table = TableToken("t", location, snapshot.version, snapshot.layout, snapshot.identity)
    for credentials in ("first", "second", "rotated"):
        options = {"aws_secret_access_key": credentials}
        catalog = Catalog("lance", str(tmp_path), storage=options)
        token, kept = plan_of(catalog, table.to_json(), ["`id` > 0"])
        assert kept.plan.snapshot.storage_options == options
        assert find_plan(catalog, token) is kept


def test_equal_options_are_one_identity_whatever_their_order() -> None:
    assert storage_identity({"a": "1", "b": "2"}) == storage_identity({"b": "2", "a": "1"})
    assert storage_identity({"a": "1,b=2"}) != storage_identity({"a": "1", "b": "2"})
    assert storage_identity(None) == storage_identity({})


def test_a_text_is_read_once_and_is_in_no_key() -> None:
    read: list[str] = []

    def length(text: str) -> int:
        read.append(text)
        return len(text)

    lengths: TextCache[int] = TextCache("lengths", max_bytes=1_000, read=length)
    assert [lengths.find(CREDENTIAL) for _ in range(3)] == [len(CREDENTIAL)] * 3
    assert read == [CREDENTIAL]
    kept = lengths._cache._entries.by_key
    assert len(kept) == 1
    assert CREDENTIAL not in repr(kept)
    lengths.find("x" * 500)  # heavier than the whole cache: read each time, and nothing is lost
    assert lengths.find("x" * 500) == 500
    assert len(read) == 3
