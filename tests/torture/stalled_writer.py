"""Lets a writer stand still at each step of its commits, while others write to the same table.

The steps are the calls into Lance that read, write, commit or remove something: the statement is
run once to count them, and then once for each, with others at work before that call. A merge that
Lance makes in one call has three: before it has read, behind that, and when it is committed.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import lance
import pyarrow as pa
from lance.dataset import DatasetOptimizer, LanceDataset, MergeInsertBuilder, Tags
from lance.optimize import Compaction
from tests.separate_process import ENVIRONMENT

import pennon
from pennon.errors import PennonError
from pennon.maintenance.expire import expire
from pennon.manifest.dataset import storage

SCHEMA = pa.schema({"id": pa.int64(), "part": pa.int64(), "v": pa.int64()})
_STEPS: Sequence[tuple[Any, str]] = (
    (LanceDataset, "commit"),
    (LanceDataset, "update_metadata"),
    (LanceDataset, "add_columns"),
    (LanceDataset, "alter_columns"),
    (LanceDataset, "cleanup_old_versions"),
    (LanceDataset, "update"),
    (LanceDataset, "delete"),
    (MergeInsertBuilder, "execute_uncommitted"),
    (DatasetOptimizer, "compact_files"),
    (Compaction, "commit"),
    (Tags, "create"),
    (Tags, "delete"),
    (storage, "_open"),
)

# What a process does behind its commits stands still at other times; `compact` does the same.
_BEHIND_COMMITS = "compaction"

Statement = Callable[[str], object]
Others = Callable[[str, int], list[int]]
Expected = Callable[[set[int]], set[int]]


def others_at_work(place: str, first: int) -> list[int]:
    """Commit to the partitions of the table, merge its small files, and expire what is old."""
    table, added = pennon.open(place), list[int]()
    rows = [{"id": number, "part": number % 2, "v": 0} for number in range(first, first + 6)]
    with contextlib.suppress(PennonError):  # who changes the table itself keeps writers away
        for row in rows[:4]:
            table.append([row])
            added.append(row["id"])
        if first % 2:
            table.maintenance.compact()
        for row in rows[4:]:
            expire(place, older_than=datetime.now(UTC) + timedelta(minutes=1), retain_last=1)
            table.append([row])
            added.append(row["id"])
    return added


_PROCESS = """
import sys
from tests.torture.stalled_writer import others_at_work

for line in sys.stdin:
    place, first = line.rstrip().rsplit(" ", 1)
    try:
        print(*others_at_work(place, int(first)), flush=True)
    except Exception as error:
        print("failed", type(error).__name__, str(error).replace("\\n", " "), flush=True)
"""


class OtherProcess:
    """Others, in a process of their own: what this one keeps in memory or locks is not theirs."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROCESS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            cwd=Path(__file__).parents[2],
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def __call__(self, place: str, first: int) -> list[int]:
        """Be at work on a table; gives the ids that were added."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(place, first, file=self._process.stdin, flush=True)
        said = self._process.stdout.readline()
        assert said
        assert not said.startswith("failed"), said
        return [int(word) for word in said.split()]


@dataclass
class _Stall:
    """Stands still once: before the call of that number."""

    at: int | None
    act: Callable[[], None]
    calls: int = 0
    is_off: bool = False

    def passed(self) -> None:
        if self.is_off or threading.current_thread().name == _BEHIND_COMMITS:
            return
        self.calls += 1
        if self.calls - 1 == self.at:
            self.is_off = True
            self.act()
            self.is_off = False


@contextlib.contextmanager
def _stalling(stall: _Stall) -> Iterator[None]:
    real = [(owner, name, vars(owner)[name]) for owner, name in _STEPS]
    whole = MergeInsertBuilder.execute, LanceDataset.merge_insert

    def wrapped(function: Any) -> Any:
        inner = function.__func__ if isinstance(function, staticmethod) else function

        def stepped(*arguments: Any, **named: Any) -> Any:
            stall.passed()
            return inner(*arguments, **named)

        return staticmethod(stepped) if isinstance(function, staticmethod) else stepped

    bases: dict[int, LanceDataset] = {}

    def merge_insert(dataset: LanceDataset, on: Any) -> Any:
        builder = whole[1](dataset, on)
        bases[id(builder)] = dataset
        return builder

    def execute(builder: Any, rows: Any, **named: Any) -> Any:
        """In two steps what Lance does in one."""
        base = bases.pop(id(builder))
        transaction, told = MergeInsertBuilder.execute_uncommitted(builder, rows, **named)
        made = LanceDataset.commit(base, transaction, max_retries=0)
        base._ds = made._ds
        return told

    try:
        for owner, name, function in real:
            setattr(owner, name, wrapped(function))
        setattr(MergeInsertBuilder, "execute", execute)  # noqa: B010 - a method of another type
        setattr(LanceDataset, "merge_insert", merge_insert)  # noqa: B010 - as above
        yield
    finally:
        for owner, name, function in real:
            setattr(owner, name, function)
        MergeInsertBuilder.execute, LanceDataset.merge_insert = whole  # type: ignore[method-assign]


def stalled_at_each_step(
    make: Callable[[], str],
    statement: Statement,
    expected: Expected,
    others: Others,
) -> list[str]:
    """Run a statement with a stall at each of its steps; gives what went wrong.

    Args:
        make: Makes a table anew, with rows of the ids 0 to 5, and gives its place.
        statement: What the writer does.
        expected: The ids of those that are there before, as they are behind the statement.
        others: What happens meanwhile.
    """
    counted = _Stall(None, lambda: None)
    place = make()
    with _stalling(counted):
        statement(place)
    return [
        f"stalled at step {at}: {fault}"
        for at in range(counted.calls)
        for fault in _stalled(at, make(), statement, expected, others)
    ]


def _stalled(
    at: int, place: str, statement: Statement, expected: Expected, others: Others
) -> Iterator[str]:
    added: list[int] = []
    stall = _Stall(at, lambda: added.extend(others(place, 1000 + at)))
    refused: PennonError | None = None
    with _stalling(stall):
        try:
            statement(place)
        except PennonError as error:
            refused = error
    yield from _faults(place, added, refused, expected)


def _faults(
    place: str,
    added: list[int],
    refused: PennonError | None,
    expected: Expected,
) -> Iterator[str]:
    if "DOUBLED" in str(refused) or "INTERNAL" in str(refused):
        yield str(refused)
    manifest = Path(place, "__manifest")
    if manifest.exists():
        names = Counter(
            lance.dataset(manifest).to_table(columns=["object_id"])["object_id"].to_pylist()
        )
        if doubled := [name for name, times in names.items() if times > 1]:
            yield f"rows of __manifest stand twice: {doubled}"
            return
    try:
        found = Counter(pennon.open(place).scan().to_arrow()["id"].to_pylist())
    except PennonError as error:
        yield f"it cannot be read: {error}"
        return
    before = {*range(6), *added}
    first = expected(set(range(6)))
    allowed = [before] if refused else [expected(before), first | set(added)]
    if any(times > 1 for times in found.values()) or set(found) not in allowed:
        lost, more = sorted(allowed[0] - set(found)), sorted(found - Counter(allowed[0]))
        yield f"lost {lost}, too many {more}, refused: {refused}"
