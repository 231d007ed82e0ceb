"""Statements that conflict with maintenance are run again, so that no user sees the conflict.

A compaction never fails a concurrent statement by itself. Rows that are rewritten under
the present partition spec are in other partitions then, and a change of them has to find them
again. Nothing of a statement in conflict is visible, so it can be run again as a whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from pennon.errors import RowsMoved, SnapshotExpired, WriteConflict

if TYPE_CHECKING:
    from pennon.catalog.tables.loaded_table import Table

__all__ = ["run_beside_maintenance"]

T = TypeVar("T")

_ATTEMPTS: Final = 20


def run_beside_maintenance(load: Callable[[], Table], statement: Callable[[Table], T]) -> T:
    """Run a statement, and run it again where it met rows that were moved to other partitions.

    Args:
        load: Gives the table at its newest version.
        statement: Reads and commits; it is given the table for each run.

    Returns:
        What the statement gives.

    Raises:
        WriteConflict: Another statement changed what this one is about, or the version that it read
            has expired.

    Example:
        >>> run_beside_maintenance(load, lambda table: delete_where(table, "id = 7"))
        ... # doctest: +SKIP
        12

    Spec: "Conflict Resolution".
    """
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(RowsMoved):
            return _run(load(), statement)
    return _run(load(), statement)


def _run(table: Table, statement: Callable[[Table], T]) -> T:
    try:
        return statement(table)
    except SnapshotExpired as error:
        if error.parameters["table"] != table.snapshot.location:
            raise  # of another table, from which the rows come
        why = f"version {table.snapshot.version}, which the statement read, has expired meanwhile"
        raise WriteConflict(table=table.name, why=why) from error
