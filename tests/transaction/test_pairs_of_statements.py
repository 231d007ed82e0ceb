"""Every pair of statements of which one commits while the other runs, as docs/writes.md has it."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.torture.races.contender import run
from tests.torture.races.model import SCHEMA, Row, State, Statement, bag, serial_orders
from tests.transaction.test_races_behind_the_last_look import behind_the_look

import pennon
from pennon.errors import WriteConflict

if TYPE_CHECKING:
    from collections.abc import Iterator

_CORNER: Final = "runs"
# The rows that the other statement is about: those of the first one, others of their partition,
# and those of another partition.
_PLACES: Final = (("a", 1), ("a", 2), ("b", 1))


def row(uid: int, part: str, v: int) -> Row:
    return {"uid": uid, "part": part, "half": 0, "v": v}


# Each partition has rows of two files, of which a statement is about the ones of one number.
_BEFORE: Final = [[row(1, "a", 1), row(3, "b", 1)], [row(2, "a", 2), row(4, "b", 2)]]


def statements(number: int, part: str, v: int) -> dict[str, Statement]:
    """Give one of each kind, about the rows of a partition that have a number."""
    new = {"rows": [row(number * 10, part, v)]}
    where = [("part", "=", part), ("v", "=", v)]
    (known,) = (one for some in _BEFORE for one in some if (one["part"], one["v"]) == (part, v))
    merge = {"rows": [{**known, "half": number}], "matched": "update", "inserts": True}
    own = {"read": where, "makes": "copy", "part": part}
    kinds: dict[str, dict[str, Any]] = {
        "append": {"kind": "append", **new},
        "INSERT … SELECT from t": {"kind": "append", **own},
        "dynamic overwrite": {"kind": "overwrite_partitions", **new},
        "overwrite of a condition": {"kind": "overwrite", "where": where[:1], **new},
        "DELETE": {"kind": "delete", "where": where},
        "UPDATE": {"kind": "update", "column": "half", "value": number, "where": where},
        "MERGE": {"kind": "merge", "others": None, **merge},
        "compaction": {"kind": "compact"},
        "TRUNCATE": {"kind": "delete", "where": []},
    }
    return {name: {**statement, "number": number} for name, statement in kinds.items()}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("before")
    table = pennon.connect(str(root)).create_table("t", SCHEMA, ["part"])
    for some in _BEFORE:
        table.append(pa.Table.from_pylist(list(some), schema=SCHEMA))
    return root


def documented() -> Iterator[tuple[str, str, str]]:
    """Give the table's cells: what runs, what commits meanwhile, and a mark for each place."""
    text = (Path(__file__).parents[2] / "docs" / "writes.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    start = next(at for at, line in enumerate(lines) if line[0] == _CORNER)
    columns = lines[start][1:]
    for name, *cells in lines[start + 1 : start + 1 + len(columns)]:
        yield from (
            (name, theirs, cell.strip("`")) for theirs, cell in zip(columns, cells, strict=True)
        )


@pytest.mark.parametrize("mine", statements(1, "a", 1))
def test_what_is_refused_beside_another_statement_is_what_the_document_says(
    mine: str, before: Path, tmp_path: Path
) -> None:
    found = [
        (mine, theirs, "".join(refusals(before, tmp_path, mine, theirs)))
        for theirs in statements(2, "a", 1)
    ]
    assert found == [cell for cell in documented() if cell[0] == mine]


def refusals(before: Path, folder: Path, mine: str, theirs: str) -> Iterator[str]:
    """Run a statement while another one commits, which is about each of the places in turn."""
    rows = tuple(one for some in _BEFORE for one in some)
    state = State(rows, tuple(SCHEMA.names), ("part",), {})
    is_anywhere = theirs in ("compaction", "TRUNCATE")
    for place in _PLACES[:1] if is_anywhere else _PLACES:
        root = folder / f"{theirs} {place}"
        shutil.copytree(before, root)
        first, second = statements(1, "a", 1)[mine], statements(2, *place)[theirs]
        done = [second, first]
        with pytest.MonkeyPatch.context() as patch:
            behind_the_look(patch, partial(run, str(root), second))
            try:
                run(str(root), first)
            except WriteConflict:
                done.remove(first)
        table = pennon.connect(str(root)).load_table("t")
        left = bag(table.scan().to_arrow().to_pylist())
        assert any(bag(order.rows) == left for order in serial_orders(state, done)), (mine, theirs)
        yield ("." if first in done else "x") * (3 if is_anywhere else 1)
