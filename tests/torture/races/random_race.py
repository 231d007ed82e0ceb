"""Random statements for a race, and the table that they are run on."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import lance
import pyarrow as pa
from tests.torture.races.model import SCHEMA, Part, Row, State, Statement, condition_sql

import pennon

__all__ = ["Race", "random_race"]

_PARTS: Final = ("a", "b", "c")
_KINDS: Final[dict[str, float]] = {
    "append": 4,
    "insert": 5,
    "overwrite": 3,
    "overwrite_partitions": 3,
    "delete": 5,
    "update": 5,
    "merge": 5,
    "add_column": 1,
    "drop_column": 1,
    "add_field": 1.5,
    "drop_field": 0.7,
    "compact": 1.5,
    "rewrite": 1.5,
    "rollback": 1,
    "replace": 1.5,
    "expire": 0.5,
    "vacuum": 0.3,
    "analyze": 0.3,
    "tag": 0.5,
}
_OF_PLAIN: Final = (
    "append",
    "insert",
    "overwrite",
    "delete",
    "update",
    "merge",
    "compact",
    "rollback",
)


@dataclass(frozen=True, slots=True)
class Race:
    """A table, and the statements that are run on it at once.

    Args:
        state: The table before.
        statements: One for each process.
        is_nested: Whether the others run while the first one does, one after the other: each has
            read what those before it have committed.
    """

    state: State
    statements: tuple[Statement, ...]
    is_nested: bool = False


def random_race(choose: random.Random, root: Path, *, is_plain: bool = False) -> Race:
    """Make a table below a folder, and choose what is done to it.

    Args:
        choose: Chooses everything.
        root: An empty folder.
        is_plain: Whether the table is a plain dataset.
    """
    state = _plain(choose, root) if is_plain else _partitioned(choose, root)
    kinds = _OF_PLAIN if is_plain else tuple(_KINDS)
    weights = [_KINDS[kind] for kind in kinds]
    count = choose.choices([2, 3], [3, 2])[0]
    statements = tuple(
        _statement(choose, kind, number, state)
        for number, kind in enumerate(choose.choices(kinds, weights, k=count), 1)
    )
    return Race(state, statements)


def _plain(choose: random.Random, root: Path) -> State:
    rows = [_row(choose, uid) for uid in range(choose.choice([0, 3, 6]))]
    lance.write_dataset(pa.Table.from_pylist(rows, schema=SCHEMA), f"{root}/plain")
    return State(tuple(rows), tuple(SCHEMA.names), (), {})


def _partitioned(choose: random.Random, root: Path) -> State:
    fields = choose.choice([("part",), ("part",), ("part", "half"), ("half",), ()])
    properties = {}
    if choose.random() < 0.3:
        changes = ("delete", "update", "merge")
        properties = {f"write.{change}.mode": "copy-on-write" for change in changes}
    table = pennon.connect(str(root)).create_table("t", SCHEMA, fields, properties=properties)
    state = State((), tuple(SCHEMA.names), fields, {})
    kept: dict[int, State] = {}
    for _ in range(choose.choice([0, 1, 2, 3])):
        kept[table.version] = state
        rows = [_row(choose, len(state.rows) + at) for at in range(choose.choice([1, 3, 5]))]
        table.append(pa.Table.from_pylist(rows, schema=SCHEMA))
        state = replace(state, rows=(*state.rows, *rows))
    if choose.random() < 0.3:
        kept[table.version] = state
        emptied: Statement = {"kind": "delete", "where": [("v", "<", choose.choice([2, 4, 5]))]}
        table.delete(condition_sql(emptied["where"]))
        state = state.after(emptied)
    if choose.random() < 0.4:
        default = choose.choice([None, 8])
        table.add_column("x", pa.int32(), default=default)
        state = state.after({"kind": "add_column", "column": "x", "default": default})
    return replace(state, versions=kept)


def _row(choose: random.Random, uid: int) -> Row:
    part = choose.choice([*_PARTS, *_PARTS, None])
    return {"uid": uid, "part": part, "half": choose.randrange(2), "v": choose.randrange(5)}


def _condition(choose: random.Random, state: State) -> list[Part]:
    kinds: list[Callable[[], list[Part]]] = [
        lambda: [("part", "=", choose.choice(_PARTS))],
        lambda: [("part", "IN", choose.sample(_PARTS, 2))],
        lambda: [("part", "IS NULL", None)],
        lambda: [("half", "=", choose.randrange(2))],
        lambda: [("v", choose.choice(["<", ">="]), choose.randrange(1, 5))],
        lambda: [("uid", "=", choose.randrange(8))],
        lambda: [("part", "=", choose.choice(_PARTS)), ("v", "<", choose.randrange(1, 5))],
        lambda: [("part", "=", choose.choice(_PARTS)), ("half", "=", choose.randrange(2))],
        list,
    ]
    if "x" in state.columns:
        kinds.append(lambda: [("x", "=", 8)])
    return choose.choice(kinds)()


def _whole(choose: random.Random) -> list[list[Part]]:
    """Choose conditions of overwrites: refused where they do not decide about partitions."""
    return [
        [],
        [("part", "=", choose.choice(_PARTS))],
        [("part", "IN", choose.sample(_PARTS, 2))],
        [("v", "<", 5)],
    ]


def _rows(choose: random.Random, number: int, where: Sequence[Part] = ()) -> list[Row]:
    """Choose rows to write; they satisfy the condition of an overwrite."""
    count = choose.choice([1, 2, 4])
    # Some numbers are those of rows that another statement writes, too.
    uids = choose.sample(
        [*range(6), *range(100, 104), *range(number * 200, number * 200 + 6)], count
    )
    bound = {column: value for column, operator, value in where if operator == "="}
    chosen = {column: value for column, operator, value in where if operator == "IN"}
    return [
        {
            **_row(choose, uid),
            **bound,
            **{name: choose.choice(some) for name, some in chosen.items()},
        }
        for uid in sorted(uids)
    ]


def _statement(choose: random.Random, kind: str, number: int, state: State) -> Statement:
    statement: dict[str, Any] = {"kind": kind, "number": number}
    match kind:
        case "append":
            statement["rows"] = _rows(choose, number)
        case "insert":
            statement |= {"kind": "append", **_own(choose, state)}
        case "replace":
            statement |= _own(choose, state) | {"makes": "copy"}
        case "overwrite":
            where = choose.choice(_whole(choose)) if state.fields else []
            statement["where"] = where
            _fill(choose, statement, state, where)
        case "overwrite_partitions":
            _fill(choose, statement, state, [])
        case "delete":
            statement["where"] = _condition(choose, state)
        case "update":
            column, value = choose.choice([("v", "+ 1"), ("v", 7), ("part", choose.choice(_PARTS))])
            statement |= {"column": column, "value": value, "where": _condition(choose, state)}
        case "merge":
            matched = choose.choice(["update", "delete", None, "update"])
            others = _condition(choose, state) if choose.random() < 0.25 else None
            inserts = others is None if matched is None else choose.random() < 0.6
            statement |= {"rows": _rows(choose, number), "matched": matched}
            statement |= {"inserts": inserts, "others": others}
        case "add_column":
            column = choose.choice(["x", "y"])
            statement |= {"column": column, "default": choose.choice([None, 4])}
        case "drop_column":
            statement["column"] = "x" if "x" in state.columns else "v"
        case "add_field" | "drop_field":
            statement["column"] = choose.choice(["part", "half"])
        case "rollback":
            statement["version"] = choose.choice([*state.versions, 10**6])
        case "expire":
            statement["retained"] = choose.choice([1, 3])
    return statement


def _own(choose: random.Random, state: State) -> dict[str, Any]:
    return {
        "read": _condition(choose, state),
        "makes": choose.choice(["copy", "total"]),
        "part": choose.choice(_PARTS),
    }


def _fill(
    choose: random.Random, statement: dict[str, Any], state: State, where: Sequence[Part]
) -> None:
    if choose.random() < 0.5:
        statement["rows"] = _rows(choose, statement["number"], where)
        return
    statement |= _own(choose, state)
    if where and where[0][0] == "part":
        parts = where[0][2]
        statement["part"] = parts if isinstance(parts, str) else choose.choice(parts)
