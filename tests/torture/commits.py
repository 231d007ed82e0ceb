"""Processes that write, rewrite and clean one table at once, killed with -9 at any moment.

    make torture-commits N=150 ARGS="--kills 20 --seed 7"

Each writer is a process of its own. It says which statement it begins, and what it was told of its
end; a statement that was under way when its process was killed may have happened or not. Each row
has an id of its own statement, so what a version holds tells which statements it has. The model:

* rows of an acknowledged append are there, once, but for those that a later statement took out;
* a statement is there as a whole or not at all, over all of its partitions;
* what a statement took out stays out;
* a row that a statement updated has its value, or that of a later one;
* of a key that MERGE inserts and updates there is one row, with the values of the last merge;
* maintenance changes nothing.

At the end ``pennon check`` has to find nothing, and vacuum to leave every row.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import pennon
from pennon.catalog.write_mode import WriteMode
from pennon.errors import SnapshotNotFound, WriteConflict
from pennon.namespace.row_delete import delete_where
from pennon.namespace.row_source import batches_of
from pennon.namespace.row_update import update_where
from pennon.namespace.row_write import write_rows

SCHEMA = pa.schema(
    {"id": pa.int64(), "part": pa.int32(), "statement": pa.int64(), "tag": pa.int64()}
)
PARTS = 4
STATEMENTS = 10
MERGED = 100  # ids from here on are inserted and updated by MERGE alone
OPERATIONS = {
    "append": 10,
    "delete": 5,
    "update": 4,
    "merge": 4,
    "drop": 1,
    "overwrite": 2,
    "compact": 4,
    "vacuum": 1,
    "expire": 1,
}


def say(**told: object) -> None:
    """Write a line that is there whatever happens to the process next."""
    os.write(1, (json.dumps(told) + "\n").encode())


def write(location: str, number: int, seed: int, commits: int) -> None:
    """Run random statements; each is announced before, and its end after."""
    chance = random.Random(seed * 1000 + number)  # noqa: S311 - a test's chance
    for step in range(commits):
        statement = number * 1000 + step
        kind = chance.choices(list(OPERATIONS), list(OPERATIONS.values()))[0]
        part = chance.randrange(PARTS)
        low = chance.randrange(10)
        say(begin=statement, kind=kind, part=part, low=low)
        try:
            done = run(location, kind, statement, part, low)
        except WriteConflict as error:
            say(end=statement, refused=str(error))
            if kind == "append":
                raise  # rows that depend on nothing
        except SnapshotNotFound as error:
            say(end=statement, refused=str(error))
        else:
            say(end=statement, version=done)


def rows(statement: int, parts: list[int]) -> list[dict[str, int]]:
    """Give ten rows for each of some partitions."""
    return [
        {"id": at, "part": part, "statement": statement, "tag": None}
        for part in parts
        for at in range(10)
    ]


def run(location: str, kind: str, statement: int, part: int, low: int) -> int:
    """Run one statement; gives the version that it made."""
    table = pennon.open(location)
    soon = datetime.now(UTC) - timedelta(minutes=10)
    loaded = table._table  # what a commit made is asked for, and not the newest version
    where = [f"part = {part}"]
    match kind:
        case "append":
            new = rows(statement, [part, (part + 1) % PARTS])
            return write_rows(loaded, WriteMode.APPEND, [], batches_of(new))
        case "overwrite":
            new = rows(statement, [part])
            return write_rows(loaded, WriteMode.OVERWRITE, where, batches_of(new))
        case "delete":
            return delete_where(loaded, f"part = {part} AND id = {low}")
        case "update":
            return update_where(loaded, {"tag": statement}, f"part = {part} AND id = {low}")
        case "merge":
            row = {"id": MERGED + low, "part": part, "statement": statement, "tag": None}
            merge = table.merge([row], on=["id", "part"])
            merge = merge.when_matched_update_all().when_not_matched_insert_all()
            return merge.execute().version
        case "drop":
            return delete_where(loaded, where[0])
        case "compact":
            table.maintenance.compact(f"part = {part}" if low % 2 else None)
        case "vacuum":
            table.maintenance.vacuum(soon)
        case "expire":
            table.maintenance.expire_snapshots(datetime.now(UTC), retain_last=20)
    return 0


@dataclass(slots=True)
class Told:
    """What a writer said of one statement."""

    kind: str
    part: int
    low: int
    is_acknowledged: bool = False
    is_refused: bool = False
    version: int = 0


@dataclass(slots=True)
class Model:
    """Every statement that was begun."""

    statements: dict[int, Told] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)

    @property
    def num_acknowledged(self) -> int:
        """How many statements were told to be done."""
        return sum(each.is_acknowledged for each in self.statements.values())

    def read(self, text: str) -> None:
        """Take what a writer wrote to its output."""
        for line in text.splitlines():
            try:
                told = json.loads(line)
            except json.JSONDecodeError:
                continue
            if "begin" in told:
                self.statements[told["begin"]] = Told(told["kind"], told["part"], told["low"])
            elif "refused" in told:
                self.statements[told["end"]].is_refused = True
            else:
                known = self.statements[told["end"]]
                known.is_acknowledged, known.version = True, told["version"]

    def problems(self, location: str) -> list[str]:
        """Compare the table with what happened, in the order of its versions."""
        table = pennon.open(location)
        found = table.scan().to_arrow().to_pylist()
        counted = Counter((each["statement"], each["part"], each["id"]) for each in found)
        wrong = [f"row {row} is there {count} times" for row, count in counted.items() if count > 1]
        held: dict[tuple[int, int], set[int]] = defaultdict(set)
        for statement, part, id_ in counted:
            if id_ < MERGED:
                held[statement, part].add(id_)
        wrong += self._merged([each for each in found if each["id"] >= MERGED])
        wrong += self._updated([each for each in found if each["id"] < MERGED])
        removals = [each for each in self.statements.values() if not each.is_refused]
        for statement, told in self.statements.items():
            parts = {
                "append": [told.part, (told.part + 1) % PARTS],
                "overwrite": [told.part],
                "seed": list(range(PARTS)),
            }
            rows_of = {
                part: held.pop((statement, part), set()) for part in parts.get(told.kind, ())
            }
            for part, there in rows_of.items():
                if told.is_refused and there:
                    wrong.append(f"statement {statement} was refused, and has rows in {part}")
                # What was under way when its writer was killed is there as a whole or not at all.
                if told.is_acknowledged or any(rows_of.values()):
                    wrong += self._lost(statement, told, part, there, removals)
                if told.is_acknowledged and there:
                    wrong += self._kept(statement, told, part, there)
        return wrong + [f"rows of no statement: {each}" for each in held]

    def _after(self, told: Told, kinds: tuple[str, ...], part: int, low: int | None) -> list[Told]:
        """Acknowledged statements of some kinds that came after another acknowledged one."""
        return [
            each
            for each in self.statements.values()
            if each.is_acknowledged
            and each.kind in kinds
            and each.part == part
            and low in (None, each.low)
            and told.is_acknowledged
            and each.version > told.version
        ]

    def _merged(self, found: list[dict[str, Any]]) -> list[str]:
        """Rows that MERGE made: one for each key, of the last merge, unless its partition went."""
        keys = Counter((each["part"], each["id"] - MERGED) for each in found)
        wrong = [
            f"key {key} was merged into {count} rows" for key, count in keys.items() if count > 1
        ]
        for row in found:
            part, low = row["part"], row["id"] - MERGED
            told = self.statements.get(row["statement"])
            if told is None or told.is_refused or (told.part, told.low) != (part, low):
                wrong.append(f"row {row} is of no merge that was made")
                continue
            later = self._after(told, ("merge",), part, low)
            later += self._after(told, ("drop", "overwrite"), part, None)
            wrong += [f"row {row} outlived a {each.kind} of {each.version}" for each in later]
        for statement, told in self.statements.items():
            gone = told.kind == "merge" and told.is_acknowledged and not keys[told.part, told.low]
            if gone and not any(
                each.kind in ("drop", "overwrite")
                and each.part == told.part
                and not each.is_refused
                for each in self.statements.values()
                if not (each.is_acknowledged and each.version < told.version)
            ):
                wrong.append(f"merge {statement} lost its row")
        return wrong

    def _updated(self, found: list[dict[str, Any]]) -> list[str]:
        """Rows have the value of the last update of their place, or of one that may be the last."""
        wrong = []
        for row in found:
            tag, told = row["tag"], self.statements.get(row["statement"])
            setter = None if tag is None else self.statements.get(tag)
            place = (row["part"], row["id"])
            if tag is not None and (
                setter is None or setter.is_refused or (setter.part, setter.low) != place
            ):
                wrong.append(f"row {row} has a value that no update gave it")
            before = told if setter is None else setter
            later = [] if before is None else self._after(before, ("update",), *place)
            wrong += [f"row {row} lost the update of version {each.version}" for each in later]
        return wrong

    def _lost(
        self, statement: int, told: Told, part: int, there: set[int], removals: list[Told]
    ) -> list[str]:
        """Rows that are gone though no statement that may have come later took them out."""
        later = [
            each
            for each in removals
            if each.part == part and not (each.is_acknowledged and each.version < told.version)
        ]
        all_gone = any(each.kind in ("drop", "overwrite") and each is not told for each in later)
        may_go = {each.low for each in later if each.kind == "delete"}
        missing = set(range(10)) - there
        if all_gone or missing <= may_go:
            return []
        return [f"statement {statement} lost rows {sorted(missing - may_go)} of part {part}"]

    def _kept(self, statement: int, told: Told, part: int, there: set[int]) -> list[str]:
        """Rows that an acknowledged later statement must have taken out."""
        wrong = []
        for each in self.statements.values():
            if each.part != part or not each.is_acknowledged or each.version <= told.version:
                continue
            gone = {each.low} if each.kind == "delete" else set(range(10))
            if each.kind in ("delete", "drop", "overwrite") and gone & there:
                wrong.append(
                    f"rows {sorted(gone & there)} of statement {statement} (version"
                    f" {told.version}) in part {part} outlived a {each.kind} of {each.version}"
                )
        return wrong


def torture(location: str, model: Model, options: argparse.Namespace, folder: Path) -> int:
    """Run rounds of writers until there are enough commits and kills; gives the kills."""
    chance = random.Random(options.seed)  # noqa: S311 - a test's chance
    killed = number = 0
    while model.num_acknowledged < options.commits or killed < options.kills:
        writers = []
        for _ in range(options.writers):
            number += 1
            told = folder / f"writer_{number}"
            arguments = [location, str(number), str(options.seed), str(STATEMENTS)]
            with told.open("wb") as output, told.with_suffix(".errors").open("wb") as errors:
                command = [sys.executable, "-m", "tests.torture.commits", "--write", *arguments]
                writers.append((subprocess.Popen(command, stdout=output, stderr=errors), told))
        for writer, told in chance.sample(writers, 2):
            killed += killed_at(writer, told, chance)
        for writer, told in writers:
            if writer.wait(timeout=300) not in (0, -signal.SIGKILL):
                errors = told.with_suffix(".errors").read_text()
                model.strange.append(f"a writer failed: {errors[-1500:]}")
            model.read(told.read_text())
        model.strange += model.problems(location)
        sys.stdout.write(f"{model.num_acknowledged} statements, {killed} kills\n")
        sys.stdout.flush()
        if model.strange:
            break
    return killed


def killed_at(writer: subprocess.Popen[bytes], told: Path, chance: random.Random) -> int:
    """Kill a writer in the middle of one of its statements; gives 1 where it still ran."""
    begun = chance.randrange(1, STATEMENTS)
    while told.read_bytes().count(b'"begin"') < begun and writer.poll() is None:
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.4))
    if writer.poll() is not None:
        return 0
    writer.kill()
    return 1


def main() -> None:
    """Run the writers, kill some, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=150)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000)
    parser.add_argument("--write", nargs=4, metavar=("LOCATION", "NUMBER", "SEED", "COMMITS"))
    options = parser.parse_args()
    if options.write:
        location, *numbers = options.write
        write(location, *map(int, numbers))
        return
    sys.stdout.write(f"seed {options.seed}\n")
    with tempfile.TemporaryDirectory() as folder:
        location = f"{folder}/table"
        pennon.create(location, SCHEMA, partition_by=["part"]).append(rows(0, list(range(PARTS))))
        model = Model({0: Told("seed", 0, 0)})
        killed = torture(location, model, options, Path(folder))
        wrong = model.problems(location)
        wrong += [str(each) for each in pennon.open(location).maintenance.check().violations]
        before = pennon.open(location).scan().count_rows()
        pennon.open(location).maintenance.vacuum(datetime.now(UTC) + timedelta(minutes=1))
        after = len(pennon.open(location).scan().to_arrow())
        if before != after:
            wrong.append(f"vacuum left {after} of {before} rows")
    done = Counter(
        (each.kind, "done" if each.is_acknowledged else "refused" if each.is_refused else "killed")
        for each in model.statements.values()
    )
    sys.stdout.write(f"{killed} kills; {dict(sorted(done.items()))}\n")
    for each in [*wrong, *model.strange][:50]:
        sys.stdout.write(f"WRONG: {each}\n")
    if wrong or model.strange:
        raise SystemExit(1)
    sys.stdout.write("every acknowledged statement is there, whole and once\n")


if __name__ == "__main__":
    main()
