"""Statements on tables of 100 and of 5,000 columns, and of a struct of 1,500, beside Lance alone.

CPU of all threads, the least of a few runs. Lance's own dataset holds the same rows: those of two
partitions are written by two of its writes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable

import lance
import pyarrow as pa
from benchmarks.side_by_side import FOLDER, print_table

import pennon

RUNS = 3
LAKE = FOLDER / "wide_tables"
SHAPES = {"100 columns": (100, False), "5,000 columns": (5_000, False), "a struct": (1_500, True)}


def rows(num_columns: int, *, nested: bool) -> pa.Table:
    values, names = pa.array([0.5, 1.5]), [f"c{at}" for at in range(num_columns)]
    columns: list[pa.Array] = [values] * num_columns
    if nested:
        columns, names = [pa.StructArray.from_arrays(columns, names=names)], ["s"]
    return pa.table([pa.array([1, 2]), pa.array([0, 1]), *columns], names=["id", "k", *names])


def least_cpu(run: Callable[[], object]) -> float:
    taken = []
    for _ in range(RUNS):
        began = time.process_time()
        run()
        taken.append(time.process_time() - began)
    return min(taken)


def compared(num_columns: int, *, nested: bool) -> dict[str, tuple[float, float]]:
    """Measure each statement: Pennon's seconds, and Lance's."""
    shutil.rmtree(LAKE, ignore_errors=True)
    given, place = rows(num_columns, nested=nested), str(LAKE / "lance")
    table = pennon.create(str(LAKE / "pennon"), given.schema, ["k"])
    halves = [given.slice(0, 1), given.slice(1, 1)]

    def append() -> None:
        for half in halves:
            lance.write_dataset(half, place, mode="append")

    def merge() -> None:
        keyed = lance.dataset(place).merge_insert("id")
        keyed.when_matched_update_all().when_not_matched_insert_all().execute(given)

    lance.write_dataset(given, place)
    appended = least_cpu(lambda: table.append(given)), least_cpu(append)
    table.overwrite(given)
    lance.write_dataset(given, place, mode="overwrite")
    return {
        "append": appended,
        "scan of a column": (
            least_cpu(lambda: table.scan("id = 1", columns=["id"]).to_arrow()),
            least_cpu(lambda: lance.dataset(place).to_table(["id"], "id = 1")),
        ),
        "delete of nothing": (
            least_cpu(lambda: table.delete("id = 7")),
            least_cpu(lambda: lance.dataset(place).delete("id = 7")),
        ),
        "update": (
            least_cpu(lambda: table.update({"id": "id"}, "id = 1")),
            least_cpu(lambda: lance.dataset(place).update({"id": "id"}, "id = 1")),
        ),
        "merge": (
            least_cpu(
                lambda: (
                    table.merge(given, on="id")
                    .when_matched_update_all()
                    .when_not_matched_insert_all()
                    .execute()
                )
            ),
            least_cpu(merge),
        ),
    }


def report() -> None:
    for name, (num_columns, nested) in SHAPES.items():
        measured = compared(num_columns, nested=nested)
        print_table(
            f"{name}, CPU seconds (the least of {RUNS})",
            ("", "Pennon", "Lance"),
            [(statement, *seconds) for statement, seconds in measured.items()],
        )
    shutil.rmtree(LAKE, ignore_errors=True)


if __name__ == "__main__":
    report()
