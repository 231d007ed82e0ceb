"""Processes that make, refresh and drop indexes beside writers, killed with -9 at any moment.

    make torture-indexes N=200 ARGS="--kills 20 --seed 7"

Each process says which statement it begins and how it ended. It changes its own rows only, so what
a version holds tells which statements it has. Between, versions are read as they are made. Then:

* rows of an acknowledged append are there, once, with the value of their last update, unless they
  were deleted; a statement that was killed is there as a whole or not at all;
* what an index finds is what a look at all rows finds, at every version that is read;
* an index that was acknowledged is there until its drop begins; one that was killed on its way is
  there or not, and ``refresh_indexes`` completes it;
* in the end every index has every row, ``check`` finds nothing, and vacuum leaves no other files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.torture.searches import check_answers, made, rows

import pennon
from pennon.errors import (
    IndexAlreadyExists,
    IndexNotFound,
    LeafMissing,
    SnapshotNotFound,
    WriteConflict,
)

ROWS = 30
SHARED = "shared"
WRITES = {"append": 8, "delete": 2, "update": 2, "compact": 2, "expire": 1, "vacuum": 1}
OF_INDEXES = {"create": 4, "drop": 1, "refresh": 3, "compact": 1, "shared": 3, "unshared": 2}
KINDS = (
    *(("v", "IVF_RQ"), ("v", "IVF_FLAT"), ("v", "IVF_SQ"), ("n", "BTREE"), ("n", "BITMAP")),
    *(("text", "BITMAP"), ("text", "INVERTED"), ("text", "NGRAM"), ("id", "ZONEMAP")),
)


def say(**told: object) -> None:
    """Write a line that is there whatever happens to the process next."""
    os.write(1, (json.dumps(told) + "\n").encode())


def write(location: str, number: int, seed: int, statements: int) -> None:
    """Run random statements; each is announced before, and its end after."""
    chance = random.Random(seed * 1000 + number)  # noqa: S311 - a test's chance
    kinds = OF_INDEXES if number % 3 == 0 else WRITES
    mine: list[int] = []
    for step in range(1, statements + 1):
        statement = number * 100 + step
        kind = chance.choices(list(kinds), list(kinds.values()))[0]
        if kind in ("delete", "update", "drop") and not mine:
            kind = "create" if kind == "drop" else "append"
        of = chance.choice(mine) if kind in ("delete", "update", "drop") else statement
        say(begin=statement, kind=kind, of=of)
        try:
            run(location, kind, statement, of, chance)
        except WriteConflict as error:
            say(end=statement, refused=str(error))
            if kind in ("append", "create", "refresh", "drop"):
                raise  # nothing that others do is against these
        except (IndexAlreadyExists, IndexNotFound) as error:
            say(end=statement, refused=str(error))
            if SHARED not in str(error):
                raise
        else:
            say(end=statement)
            mine += [statement] if kind in ("append", "create") else []
            if kind in ("delete", "drop"):
                mine.remove(of)


def run(location: str, kind: str, statement: int, of: int, chance: random.Random) -> None:
    """Run one statement."""
    table = pennon.open(location)
    own = f"id >= {of * 1000} AND id < {of * 1000 + 1000}"
    match kind:
        case "append":
            table.append(rows(chance, ROWS, statement * 1000))
        case "delete":
            table.delete(own)
        case "update":
            table.update({"n": statement}, where=own)
        case "compact":
            table.maintenance.compact(chance.choice([None, "tenant = 'a'"]))
        case "expire":
            table.maintenance.expire_snapshots(datetime.now(UTC), retain_last=20)
        case "vacuum":
            table.maintenance.vacuum(datetime.now(UTC) - timedelta(minutes=10))
        case "refresh":
            table.refresh_indexes()
        case "create" | "shared":
            column, index_type = chance.choice(KINDS)
            name = SHARED if kind == "shared" else f"i{statement}"
            table.create_index(column, index_type, name, min_bytes=0)
        case _:
            table.drop_index(SHARED if kind == "unshared" else f"i{of}")


@dataclass(slots=True)
class Model:
    """What the processes said."""

    kinds: dict[int, tuple[str, int]] = field(default_factory=dict)
    ends: dict[int, bool] = field(default_factory=dict)  # whether it was refused
    dropped: set[str] = field(default_factory=set)  # between the rounds
    wrong: list[str] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Take what a process wrote to its output."""
        for line in text.splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                told = json.loads(line)
                if "begin" in told:
                    self.kinds[told["begin"]] = (told["kind"], told["of"])
                else:
                    self.ends[told["end"]] = "refused" in told

    def done(self, kind: str) -> list[int]:
        """Name the acknowledged statements of a kind."""
        return [at for at, (own, _) in self.kinds.items() if own == kind and self.is_done(at)]

    def is_done(self, statement: int) -> bool:
        """Whether a statement was acknowledged."""
        return self.ends.get(statement) is False

    def problems(self, location: str) -> list[str]:
        """Compare the rows and the definitions of the newest version with what was said."""
        table = pennon.open(location)
        held: dict[int, Counter[int]] = defaultdict(Counter)
        values: dict[int, set[int | None]] = defaultdict(set)
        for row in table.scan(columns=["id", "n"]).to_arrow().to_pylist():
            held[row["id"] // 1000][row["id"]] += 1
            values[row["id"] // 1000].add(row["n"])
        wrong = [f"rows of no statement {at}" for at in held.keys() - self.kinds.keys() - {0}]
        if held.pop(0, Counter()) != Counter(range(1000)):
            wrong.append("the first rows are not there, once")
        names = {index.name for index in table.indexes()} | self.dropped
        for statement, (kind, _) in self.kinds.items():
            of = [other for other in self.kinds if self.kinds[other][1] == statement]
            if kind == "create":
                dropped = [other for other in of if self.kinds[other][0] == "drop"]
                may_be_gone = any(self.ends.get(other, False) is False for other in dropped)
                if self.is_done(statement) and not may_be_gone and f"i{statement}" not in names:
                    wrong.append(f"index i{statement} is lost")
                if any(map(self.is_done, dropped)) and f"i{statement}" in names - self.dropped:
                    wrong.append(f"index i{statement} outlived its drop")
            if kind == "append":
                wrong += self._wrong_rows(statement, of, held[statement], values[statement])
        return wrong

    def _wrong_rows(
        self, statement: int, of: list[int], held: Counter[int], values: set[int | None]
    ) -> list[str]:
        """Look at the rows of one append, and at what its own writer did to them."""
        every = Counter(range(statement * 1000, statement * 1000 + ROWS))
        deleting = [at for at in of if self.kinds[at][0] == "delete" and not self.ends.get(at)]
        is_gone = any(map(self.is_done, deleting))
        may_be_gone = bool(deleting) or not self.is_done(statement)
        wrong = []
        if held not in ([Counter()] if is_gone else [every, Counter()] if may_be_gone else [every]):
            wrong.append(f"statement {statement} has rows {dict(held)}")
        updates = [at for at in of if self.kinds[at][0] == "update" and not self.ends.get(at)]
        sure = [at for at in updates if self.is_done(at)]
        last = [{at} for at in updates if not sure or at >= sure[-1]]
        if held and sure and values not in last:
            wrong.append(f"the rows of {statement} have values {values}, not of {last}")
        return wrong


def race(location: str, model: Model, options: argparse.Namespace, folder: Path) -> int:
    """Run rounds of processes until there are enough appends and kills; gives the kills."""
    chance = random.Random(options.seed)  # noqa: S311 - a test's chance
    killed = number = 0
    while len(model.done("append")) < options.appends or killed < options.kills:
        started = []
        for _ in range(3):
            number += 1
            told = folder / f"process_{number}"
            arguments = [location, *map(str, (number, options.seed, options.statements))]
            with told.open("wb") as output, told.with_suffix(".errors").open("wb") as errors:
                command = [sys.executable, "-m", "tests.torture.index_races", "--write", *arguments]
                started.append((subprocess.Popen(command, stdout=output, stderr=errors), told))
        for process, told in chance.sample(started, min(2, options.kills - killed)):
            begun = chance.randrange(1, options.statements)
            while told.read_bytes().count(b'"begin"') < begun and process.poll() is None:
                model.wrong += looked_at(location, chance)
            killed += killed_soon(process, chance)
        for process, told in started:
            while process.poll() is None:
                model.wrong += looked_at(location, chance)
            if process.returncode not in (0, -signal.SIGKILL):
                printed = told.with_suffix(".errors").read_text()
                model.wrong.append(f"a process failed: {printed[-2500:]}")
            model.read(told.read_text())
        model.wrong += model.problems(location) + looked_at(location, chance)
        sys.stdout.write(f"{len(model.done('append'))} appends, {killed} kills\n")
        sys.stdout.flush()
        if model.wrong:
            break
        drop_some(location, model, 4)
    return killed


def killed_soon(process: subprocess.Popen[bytes], chance: random.Random) -> int:
    """Kill a process at any moment; gives 1 where it still ran."""
    time.sleep(chance.uniform(0, 0.3))
    if process.poll() is not None:
        return 0
    process.kill()
    return 1


def looked_at(location: str, chance: random.Random) -> list[str]:
    """Search a version that is the newest now; gives what is wrong with it."""
    table = pennon.open(location)
    try:
        check_answers(table, chance)
    except AssertionError as error:
        return [f"version {table.version}: {error}"]
    except (LeafMissing, SnapshotNotFound):
        with contextlib.suppress(SnapshotNotFound):
            pennon.open(location, table.version)
            raise  # what has not expired has to be readable
    time.sleep(0.4)
    return []


def drop_some(location: str, model: Model, left: int) -> None:
    """Keep so many of the indexes, so that there is time for others."""
    table = pennon.open(location)
    for index in table.indexes()[: max(0, len(table.indexes()) - left)]:
        table.drop_index(index.name)
        model.dropped.add(index.name)


def ended(location: str, model: Model) -> list[str]:
    """Complete the indexes, clean up, and look again; gives what is wrong."""
    table = pennon.open(location)
    table.refresh_indexes()
    listed = table.metadata("indexes").to_pylist()
    for name in {row["index"] for row in listed} - {index.name for index in table.indexes()}:
        table.drop_index(name)  # whose drop was killed
    lacking = [row for row in table.metadata("indexes").to_pylist() if row["rows_not_indexed"]]
    wrong = [f"refresh_indexes left {row}" for row in lacking] + model.problems(location)
    wrong += [str(found) for found in table.maintenance.check().violations]
    table.maintenance.expire_snapshots(older_than=datetime.now(UTC), retain_last=1)
    table.maintenance.vacuum(datetime.now(UTC) + timedelta(minutes=1))
    drop_some(location, model, 0)
    wrong += model.problems(location)
    wrong += looked_at(location, random.Random(1))  # noqa: S311 - a test's chance
    table.maintenance.expire_snapshots(older_than=datetime.now(UTC), retain_last=1)
    table.maintenance.vacuum(datetime.now(UTC) + timedelta(minutes=1))
    left = [str(path) for path in Path(location).glob("*/_indices/*/*") if path.is_file()]
    return wrong + [f"vacuum left {len(left)} files of indexes: {left[:3]}"] * bool(left)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the processes, kill some, and compare; gives 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--statements", type=int, default=8, help="of each process")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--write", nargs=4, metavar=("LOCATION", "NUMBER", "SEED", "STATEMENTS"))
    options = parser.parse_args(arguments)
    if options.write:
        location, *numbers = options.write
        write(location, *map(int, numbers))
        return 0
    options.seed = secrets.randbelow(1 << 16) if options.seed is None else options.seed
    sys.stdout.write(f"--seed {options.seed}\n")
    folder = Path(tempfile.mkdtemp())
    model = Model()
    made(folder, random.Random(options.seed))  # noqa: S311 - a test's chance
    location = str(folder / "t")
    killed = race(location, model, options, folder)
    wrong = model.wrong or ended(location, model)  # what is wrong is not touched any more
    ends = {True: "refused", False: "done", None: "killed"}
    done = Counter((kind, ends[model.ends.get(at)]) for at, (kind, _) in model.kinds.items())
    sys.stdout.write(f"{killed} kills; {dict(sorted(done.items()))}\n")
    for finding in wrong[:50]:
        sys.stdout.write(f"WRONG: {finding}\n")
    if wrong:
        sys.stdout.write(f"the table, and what was said, stay in {folder}\n")
        return 1
    shutil.rmtree(folder)
    sys.stdout.write("no index lost, no row wrong\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
