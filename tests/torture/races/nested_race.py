"""Races in which the first statement begins first and commits last, on few rows of few partitions.

It takes rows out without having read them, or replaces partitions. The second may come behind it
though it was committed before, as rows that are added do; the third has read what the second one
did, and what the first one takes out. Random statements on many rows hardly ever come to this.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from tests.torture.races.model import SCHEMA, Part, Row, State, Statement, condition_sql
from tests.torture.races.random_race import Race

import pennon

__all__ = ["nested_race"]

_FIELDS: Final = (("part",), ("part",), ("part", "half"), ("half",))
# Of the rows that are there, those that the first and the second statement write, and new ones.
_THERE, _WRITTEN, _ADDED, _NEW = (1, 2), 10, 20, (30, 31)


def nested_race(choose: random.Random, root: Path) -> Race:
    """Make a table below a folder, and choose three statements that are about each other.

    Args:
        choose: Chooses everything.
        root: An empty folder.
    """
    parts = choose.sample("abc", 3)
    state = _table(choose, root, parts)
    inside, outside = parts[:2], parts[2]
    statements = (
        {"number": 1, **_first(choose, inside)},
        {"number": 2, **_second(choose, [*inside, inside[1], outside])},
        {"number": 3, **_third(choose, parts)},
    )
    return Race(state, statements, is_nested=True)


def _table(choose: random.Random, root: Path, parts: Sequence[str]) -> State:
    fields = choose.choice(_FIELDS)
    table = pennon.connect(str(root)).create_table("t", SCHEMA, fields)
    state = State((), tuple(SCHEMA.names), fields, {})
    rows = [_row(choose, uid, [part]) for uid, part in zip(_THERE, parts, strict=False)]
    rows = rows[: choose.choice([0, 1, 1, 2])]
    if rows:
        append: Statement = {"kind": "append", "rows": rows}
        table.append(pa.Table.from_pylist(rows, schema=SCHEMA))
        state = state.after(append)
    if rows and choose.random() < 0.3:
        emptied: Statement = {"kind": "delete", "where": [("uid", "=", rows[0]["uid"])]}
        table.delete(condition_sql(emptied["where"]))
        state = state.after(emptied)
    return state


def _row(choose: random.Random, uid: int, parts: Sequence[str]) -> Row:
    part, half, v = choose.choice(parts), choose.randrange(2), choose.randrange(5)
    return {"uid": uid, "part": part, "half": half, "v": v}


def _first(choose: random.Random, inside: Sequence[str]) -> dict[str, Any]:
    conditions: list[list[Part]] = [[("part", "IN", inside)], [("v", "<", 5)], []]
    where = choose.choices(conditions, [6, 1, 1])[0]
    rows = [_row(choose, choose.choice([_WRITTEN, *_THERE]), inside)]
    one_of: list[dict[str, Any]] = [
        {"kind": "overwrite", "where": where, "rows": rows},
        {"kind": "overwrite_partitions", "rows": rows},
        {"kind": "delete", "where": where},
    ]
    return choose.choices(one_of, [4, 2, 1])[0]


def _second(choose: random.Random, parts: Sequence[str]) -> dict[str, Any]:
    one_of: list[dict[str, Any]] = [
        {"kind": "append", "rows": [_row(choose, _ADDED, parts)]},
        {"kind": "add_field", "column": "half"},
        {"kind": "drop_field", "column": "half"},
        {"kind": "delete", "where": [("part", "=", choose.choice(parts))]},
        {"kind": "compact"},
    ]
    return choose.choices(one_of, [6, 2, 1, 1, 0.5])[0]


def _third(choose: random.Random, parts: Sequence[str]) -> dict[str, Any]:
    uids = [*_THERE, _WRITTEN, _ADDED, *_NEW]
    rows = [_row(choose, uid, parts) for uid in sorted(choose.sample(uids, choose.choice([1, 3])))]
    own = {"kind": "append", "read": [], "part": choose.choice(parts)}
    one_of: list[dict[str, Any]] = [
        own | {"makes": "total"},
        own | {"makes": "copy"},
        {"kind": "merge", "rows": rows, "matched": None, "inserts": True, "others": None},
        {"kind": "merge", "rows": rows, "matched": "update", "inserts": True, "others": None},
        {"kind": "update", "column": "v", "value": "+ 1", "where": [("v", "<", 3)]},
        {"kind": "delete", "where": [("part", "=", choose.choice(parts))]},
        {"kind": "overwrite", "where": [("part", "IN", parts[1:])], "rows": rows},
        {"kind": "overwrite_partitions", "rows": rows},
    ]
    return choose.choices(one_of, [3, 1, 4, 1, 1, 1, 1, 1])[0]
