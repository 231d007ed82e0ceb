"""A process that runs statements on a table, and stops before each commit until it may go on.

It reads one statement a line, and says at which gate it waits, then how the statement ended. The
gates are where others can come between: before the table is opened, before the newest version is
looked at, and before Lance commits.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import sys
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.dataset import MergeInsertBuilder
from tests.torture.races.model import SCHEMA, Impossible, State, Statement, condition_sql
from tests.transaction.lake import table_of

import pennon
from pennon.catalog.configured_catalog import Catalog, WriteMode
from pennon.catalog.ddl.table_ddl import publish
from pennon.errors import InternalError, PennonError
from pennon.manifest.format.rows import CommitIdentity
from pennon.namespace import PartitionedNamespace
from pennon.namespace.rows.row_write import batches_of
from pennon.transaction import Transaction

_MODES = {
    "append": WriteMode.APPEND,
    "overwrite": WriteMode.OVERWRITE,
    "overwrite_partitions": WriteMode.OVERWRITE_PARTITIONS,
}


def say(**told: object) -> None:
    """Write a line at once."""
    os.write(1, (json.dumps(told) + "\n").encode())


class Gates:
    """Where the statement that runs waits; others of this process, behind commits, do not."""

    is_closed = False

    def wait(self, name: str) -> None:
        """Wait until the line ``go`` comes; ``run`` opens all gates until the statement ends."""
        if self.is_closed and threading.current_thread() is threading.main_thread():
            say(gate=name)
            self.is_closed = sys.stdin.readline().strip() != "run"

    def before(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Have a function wait at a gate."""

        @wraps(function)
        def held(*args: Any, **named: Any) -> Any:
            if not named.get("detached"):  # nobody sees the others yet
                self.wait(name)
            return function(*args, **named)

        return held


def rows_of(table: PartitionedNamespace, statement: Statement) -> list[dict[str, Any]]:
    """Make the rows of the table's own, of what the statement has read."""
    read = table.scan(condition_sql(statement["read"])).to_arrow().to_pylist()
    columns = tuple(table.schema.names)
    return [
        dict(row) for row in State(tuple(read), columns, (), {}).made({**statement, "read": []})
    ]


def write_own_rows(table: PartitionedNamespace, statement: Statement) -> int:
    """Write rows that were made of the table's, as INSERT … SELECT from itself does."""
    stored = table_of(table).stored
    made = pa.Table.from_pylist(rows_of(table, statement), schema=table.schema)
    mode = _MODES[statement["kind"]]
    where = [condition_sql(statement["where"])] if statement.get("where") else []
    mode = stored.check_write(mode, where)
    staged = stored.stage_unordered(batches_of(made)).texts
    identity = CommitIdentity.fresh()
    with contextlib.ExitStack() as undo:
        options = stored.snapshot.storage_options
        undo.callback(stored.abort, stored.snapshot.location, options, staged, identity)
        version = stored.commit(mode, where, staged, identity, [[condition_sql(statement["read"])]])
        undo.pop_all()
    return version


def replace_by_own_rows(root: str, table: PartitionedNamespace, statement: Statement) -> int:
    """Put a table of its own rows in the place of a table, as REPLACE TABLE … AS SELECT does."""
    made = pa.Table.from_pylist(rows_of(table, statement), schema=table.schema)
    fields = [field.field_id for field in table.spec.fields]
    new = pennon.create(f"{root}/made_by_{statement['number']}", table.schema, fields)
    new.append(made)
    publish(
        Catalog("lance", root), ("t",), new.location, "replace", [(table.location, table.version)]
    )
    return 0


def merge(table: PartitionedNamespace, statement: Statement) -> None:
    """Run MERGE."""
    rows = pa.Table.from_pylist(statement["rows"], schema=SCHEMA)
    merging = table.merge(rows, on="uid")
    if statement["matched"] == "update":
        merging = merging.when_matched_update_all()
    if statement["matched"] == "delete":
        merging = merging.when_matched_delete()
    if statement["inserts"]:
        merging = merging.when_not_matched_insert_all()
    if statement["others"] is not None:
        merging = merging.when_not_matched_by_source_delete(condition_sql(statement["others"]))
    merging.execute()


def run(root: str, statement: Statement) -> None:
    """Run one statement.

    Raises:
        Impossible: It names what is not there.
    """
    table = opened(root)
    now = dt.datetime.now(dt.UTC)
    kind, where = statement["kind"], condition_sql(statement.get("where") or [])
    own = pa.Table.from_pylist(statement["rows"], schema=SCHEMA) if "rows" in statement else None
    match kind:
        case "append" | "overwrite" | "overwrite_partitions" if own is None:
            write_own_rows(table, statement)
        case "append":
            table.append(own)
        case "overwrite":
            table.overwrite(own, where if statement["where"] else None)
        case "overwrite_partitions":
            table.overwrite_partitions(own)
        case "replace":
            replace_by_own_rows(root, table, statement)
        case "delete":
            table.delete(where)
        case "update":
            name, value = statement["column"], statement["value"]
            value = f"{name} + 1" if value == "+ 1" else value
            table.update({name: f"'{value}'" if name == "part" else value}, where)
        case "merge":
            merge(table, statement)
        case "add_column":
            table.add_column(statement["column"], pa.int32(), default=statement["default"])
        case "drop_column":
            table.drop_column(statement["column"])
        case "add_field":
            table.add_partition_field(statement["column"], statement["column"])
        case "drop_field":
            table.drop_partition_field(statement["column"])
        case "rollback":
            table.maintenance.rollback(statement["version"])
        case "compact":
            table.maintenance.compact()
        case "rewrite":
            table.maintenance.rewrite_partitions()
        case "vacuum":
            table.maintenance.vacuum(now - dt.timedelta(hours=1))
        case "expire":
            table.maintenance.expire_snapshots(now, retain_last=statement["retained"])
        case "analyze":
            table.maintenance.analyze()
        case "tag":
            table.create_tag(f"t{statement['number']}")
        case _:
            raise Impossible(kind)


def opened(root: str) -> PartitionedNamespace:
    """Open the table of a lake, or the plain dataset that there is instead."""
    plain = Path(root) / "plain"
    return pennon.open(plain) if plain.is_dir() else pennon.connect(root).load_table("t")


def main() -> None:
    """Run the statements that come, until none comes any more."""
    gates = Gates()
    Transaction.commit = gates.before("look", Transaction.commit)  # type: ignore[method-assign]
    commit = gates.before("commit", lance.LanceDataset.commit)
    lance.LanceDataset.commit = staticmethod(commit)  # type: ignore[method-assign, assignment]
    execute = gates.before("commit", MergeInsertBuilder.execute)
    MergeInsertBuilder.execute = execute  # type: ignore[method-assign]
    for line in iter(sys.stdin.readline, ""):
        told = json.loads(line)
        gates.is_closed = True
        gates.wait("begin")
        try:
            run(told["root"], told["statement"])
        except Impossible:
            say(refused="Impossible")
        except InternalError as error:
            say(failed=str(error))
        except PennonError as error:
            say(refused=type(error).__name__, why=str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            say(failed=f"{type(error).__name__}: {error}")
        else:
            say(done=True)
        gates.is_closed = False


if __name__ == "__main__":
    main()
