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
* what a rollback undid is not there, and what it brought back is;
* a tag keeps its rows;
* maintenance changes nothing.

At the end ``pennon check`` has to find nothing, and vacuum to leave every row. Then a foreign
writer and upstream's clean-up are let loose on two leaves: the first must change nothing, what the
second took must be named by check and repair, and be mended by deleting the partition.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
from tests.torture.commit_model import MERGED, PARTS, Model, Told
from tests.transaction.lake import table_of

import pennon
from pennon.catalog.configured_catalog import WriteMode
from pennon.errors import PennonError, SnapshotNotFound, TagNotFound, TagRefused, WriteConflict
from pennon.maintenance.rollback import rollback
from pennon.namespace.rows.row_update import delete_where, update_where
from pennon.namespace.rows.row_write import batches_of, write_rows

SCHEMA = pa.schema(
    {"id": pa.int64(), "part": pa.int32(), "statement": pa.int64(), "tag": pa.int64()}
)
STATEMENTS = 10
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
    "analyze": 1,
    "tag": 1,
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
        except (SnapshotNotFound, TagRefused) as error:
            say(end=statement, refused=str(error))
        else:
            say(end=statement, version=done)


def rows(statement: int, parts: list[int]) -> list[dict[str, int | None]]:
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
    loaded = table_of(table)  # what a commit made is asked for, and not the newest version
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
        case "analyze":
            table.maintenance.analyze(["id"])
        case "tag":
            count = table.scan().count_rows()
            table.create_tag(f"s{statement}.{count}", table.version)
            for name in sorted(table.tags())[:-4]:
                with contextlib.suppress(TagNotFound):
                    table.drop_tag(name)
    return 0


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
            if chance.random() < options.rollbacks:
                roll_back(location, model, chance)
        for writer, told in writers:
            if writer.wait(timeout=300) not in (0, -signal.SIGKILL):
                printed = told.with_suffix(".errors").read_text()
                model.strange.append(f"a writer failed: {printed[-1500:]}")
            model.read(told.read_text())
        model.strange += model.problems(location) + changed_tags(location)
        sys.stdout.write(f"{model.num_acknowledged} statements, {killed} kills\n")
        sys.stdout.flush()
        if model.strange:
            break
    return killed


def roll_back(location: str, model: Model, chance: random.Random) -> None:
    """Bring back a version that may expire meanwhile, beside the writers."""
    to = pennon.open(location).version - chance.choice([1, 2, 3, 5, 30, 60])
    with contextlib.suppress(SnapshotNotFound):
        made = rollback(location, to)
        model.rollbacks.append((to, begun_at(location, made)))
        held = [rows_at(location, version) for version in (to, made)]
        if None not in held and held[0] != held[1]:
            model.strange.append(f"version {made} is not what it brought back, version {to}")


def begun_at(location: str, made: int) -> int:
    """Give the first version of a rollback, whose records may have needed another one.

    A later rollback may go back to what lies between.
    """
    entries = pennon.open(location, made).history()
    return max(entry.version for entry in entries if entry.operation == "rollback")


def rows_at(location: str, version: int) -> Counter[str] | None:
    """Give the rows of a version; None where it has expired."""
    try:
        found = pennon.open(location, version).scan().to_arrow().to_pylist()
    except PennonError:
        with contextlib.suppress(SnapshotNotFound):
            pennon.open(location, version)
            raise  # what is still there has to be readable
        return None
    return Counter(str(finding) for finding in found)


def changed_tags(location: str) -> list[str]:
    """Count the rows of every tag again."""
    wrong = []
    for name in pennon.open(location).tags():
        if name.startswith("s"):
            count = pennon.open(location, name).scan().count_rows()
            if count != int(name.rpartition(".")[2]):
                wrong.append(f"tag {name} has {count} rows")
    return wrong


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


def let_loose(location: str) -> list[str]:
    """Let others at the leaves; gives what was not named, or not mended."""
    wrong = []
    rest = pennon.open(location)
    leaves = rest.snapshot.leaves().table.to_pylist()
    written, cleaned = leaves[0], leaves[-1]
    before = rest.scan().count_rows()
    foreign = lance.dataset(f"{location}/{written['location']}")
    theirs = pa.table(
        [pa.array([7], field.type) for field in foreign.schema], schema=foreign.schema
    )
    lance.write_dataset(theirs, foreign.uri, mode="append").add_columns({"theirs": "1"})
    if pennon.open(location).scan().count_rows() != before:
        wrong.append("a foreign writer of a leaf's main branch changed what is read")
    leaf = lance.dataset(f"{location}/{cleaned['location']}")
    leaf.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    code = "import sys; from pennon.cli import main; sys.exit(main(sys.argv[1:]))"
    for command in ("check", "repair"):  # in a process that has opened nothing yet
        run = [sys.executable, "-c", code, command, location]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        if done.returncode != 1 or cleaned["location"] not in done.stdout + done.stderr:
            wrong.append(f"{command} does not name the leaf: {done.stdout}{done.stderr}")
    pennon.open(location).delete(f"part = {cleaned['partition_field_part']}")
    rows_there = len(pennon.open(location).scan().to_arrow())
    if rows_there != before - cleaned["num_rows"]:
        wrong.append(f"{rows_there} rows are there without the partition, of {before} before")
    return wrong + [
        str(violation) for violation in pennon.open(location).maintenance.check().violations
    ]


def ended(location: str, model: Model) -> list[str]:
    """Look at what is left, clean up, and let others at it; gives what is wrong."""
    wrong = model.problems(location)
    wrong += [str(violation) for violation in pennon.open(location).maintenance.check().violations]
    before = pennon.open(location).scan().count_rows()
    pennon.open(location).maintenance.vacuum(datetime.now(UTC) + timedelta(minutes=1))
    after = len(pennon.open(location).scan().to_arrow())
    if before != after:
        wrong.append(f"vacuum left {after} of {before} rows")
    return wrong + let_loose(location)


def main() -> None:
    """Run the writers, kill some, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=150)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--rollbacks", type=float, default=0.2, help="how many for each kill")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000)
    parser.add_argument("--write", nargs=4, metavar=("LOCATION", "NUMBER", "SEED", "COMMITS"))
    options = parser.parse_args()
    if options.write:
        location, *numbers = options.write
        write(location, *map(int, numbers))
        return
    sys.stdout.write(f"seed {options.seed}\n")
    folder = Path(tempfile.mkdtemp())
    location = f"{folder}/table"
    pennon.create(location, SCHEMA, partition_by=["part"]).append(rows(0, list(range(PARTS))))
    model = Model({0: Told("seed", 0, 0)})
    killed = torture(location, model, options, folder)
    wrong = model.strange or ended(location, model)  # what is wrong is not touched any more
    done = Counter(
        (
            statement.kind,
            "done"
            if statement.is_acknowledged
            else "refused"
            if statement.is_refused
            else "killed",
        )
        for statement in model.statements.values()
    )
    sys.stdout.write(
        f"{len(model.rollbacks)} rollbacks, {killed} kills; {dict(sorted(done.items()))}\n"
    )
    for finding in wrong[:50]:
        sys.stdout.write(f"WRONG: {finding}\n")
    if wrong:
        sys.stdout.write(f"the table, and what its writers said, stay in {folder}\n")
        raise SystemExit(1)
    shutil.rmtree(folder)
    sys.stdout.write("every acknowledged statement is there, whole and once\n")


if __name__ == "__main__":
    main()
