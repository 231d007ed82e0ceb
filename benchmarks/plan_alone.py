"""Planning without Spark: Pennon's planner beside PyIceberg's, Iceberg's own and pyarrow's.

Over the tables of ``benchmarks.plan_peers``, each planner in a process of its own, one after the
other. `benchmarks.plan_peers` measures the same questions until Spark knows its tasks, most of
which is Spark's own planning on every side.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import fetched
from benchmarks.partitions_in_bulk import PER_DAY
from benchmarks.plan_peers import LAKE, SIZES, prepare, sides, table
from benchmarks.plan_scan import LONG_LIST, questions
from benchmarks.planner import IN_PYTHON, IN_THE_JVM, PENNON, PYARROW
from benchmarks.side_by_side import ROOT, OtherLoad, print_table
from benchmarks.spark_side import Side

PYICEBERG = "pyiceberg[pyarrow]==0.12.0"


def orders(side: Side, count: int) -> Mapping[str, tuple[Path, str]]:
    """Give the planners of a side's table: their interpreters, and what they call the table."""
    folder = LAKE / side.name.lower() / str(count)
    if side.name != "Iceberg":
        return {PENNON if side.name == PENNON else PYARROW: (side.python, str(folder))}
    found = {IN_THE_JVM: (side.python, table(side, count))}
    programs = fetched.virtual_environment("pyiceberg", PYICEBERG)
    if programs is not None:
        metadata = LAKE / "iceberg" / "bench" / f"p{count}" / "metadata"
        newest = (metadata / "version-hint.text").read_text().strip()
        found[IN_PYTHON] = (programs / "python", str(metadata / f"v{newest}.metadata.json"))
    return found


def asked(count: int, *, is_pennon: bool) -> dict[str, dict[str, object]]:
    """State the questions of `benchmarks.plan_scan` as a column and its values."""
    given = {}
    middle = count // 2
    values: dict[str, tuple[str, list[object], bool]] = {
        "point": ("k", [middle], False),
        "range of 100": ("k", [middle, middle + 99], True),
        "IN of 1,000": ("k", [at * (count // 1_000) for at in range(1_000)], False),
    }
    for name, question in questions(count).items():
        if name == LONG_LIST:
            continue
        if name not in values:
            _, day, _ = question.by_day.split("'")
            values[name] = ("day", [day], False)
        column, compared, is_range = values[name]
        given[name] = {
            "text": question.by_time if is_pennon else question.by_day,
            "column": column,
            "values": compared,
            "is_range": is_range,
        }
    return given


def planned(name: str, python: Path, order: Mapping[str, object]) -> dict[str, dict[str, float]]:
    """Ask a planner everything, in a process of its own."""
    process = subprocess.run(
        [str(python), "-m", "benchmarks.planner"],
        input=json.dumps({"planner": name, **order}),
        cwd=ROOT,
        text=True,
        check=False,
        capture_output=True,
        env={key: value for key, value in os.environ.items() if key != "SPARK_HOME"},
    )
    if process.returncode != 0:
        sys.exit(f"{name}: {process.stderr[-1000:]}")
    answers: dict[str, dict[str, float]] = json.loads(process.stdout.splitlines()[-1])
    return answers


def compare(count: int) -> list[tuple[object, ...]]:
    """Ask all planners, and see that each lists the same number of partitions."""
    answers: dict[str, dict[str, dict[str, float]]] = {}
    for side in sides():
        prepare(side, count)
        for name, (python, known_as) in orders(side, count).items():
            order = {"table": known_as, "conf": side.conf}
            order["questions"] = asked(count, is_pennon=name == PENNON)
            answers[name] = planned(name, python, order)
    expected = {"point": 1, "range of 100": 100, "IN of 1,000": 1_000, "one day": PER_DAY}
    rows: list[tuple[object, ...]] = []
    for question, needed in expected.items():
        times = {name: answer[question] for name, answer in answers.items()}
        assert all(time["partitions"] == needed for time in times.values()), times
        own = times.pop(PENNON)
        row = [f"{count:,}", question, f"{1000 * own['first']:.0f} / {1000 * own['later']:.1f}"]
        for name in (IN_PYTHON, IN_THE_JVM, PYARROW):
            if name not in times:
                row.append("")
                continue
            first, later = times[name]["first"], times[name]["later"]
            more = f"{first / own['first']:.1f}, {later / own['later']:.1f}"
            row.append(f"{1000 * first:,.0f} / {1000 * later:,.1f} (x {more})")
        rows.append(tuple(row))
    return rows


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--partitions", type=int, nargs="*", default=SIZES)
    given = arguments.parse_args()
    LAKE.mkdir(parents=True, exist_ok=True)
    load = OtherLoad.start()
    rows = [row for count in given.partitions for row in compare(count)]
    header = ("partitions", "query", PENNON, IN_PYTHON, IN_THE_JVM, PYARROW)
    print_table("planned without Spark: milliseconds, first / later", header, rows)
    print(f"\n  Other processes used {load.cores():.1f} of {os.cpu_count()} cores meanwhile.")


if __name__ == "__main__":
    main()
