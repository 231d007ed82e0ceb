"""Joins of tables whose columns or specs have changed since, and of what they were before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import assert_join
from tests.spark.joins.join_sides import JOINS, Sides, check

import pennon

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Change:
    """How a table came about: its first half, its changes, its second half, and all its rows."""

    before: tuple[str, ...]
    statements: tuple[str, ...]
    second: str = "*"
    first_seen: str = "*"
    second_seen: str = ""

    def make(self, sides: Sides) -> str:
        name = sides.fresh("l", *self.before, where="v % 2 = 0")
        for statement in self.statements:
            sides.spark.sql(f"ALTER TABLE {name} {statement}")
        sides.spark.sql(f"INSERT INTO {name} SELECT {self.second} FROM l_plain WHERE v % 2 <> 0")
        rows = (
            f"SELECT {self.first_seen} FROM l_plain WHERE v % 2 = 0 UNION ALL"
            f" SELECT {self.second_seen or self.first_seen} FROM l_plain WHERE v % 2 <> 0"
        )
        sides.spark.sql(rows).createOrReplaceTempView("l_changed")
        return name


CHANGES = {
    # Names that change hands: a key is a field of the schema, never a name.
    "swapped names": Change(
        ("bucket(16, id)",),
        ("RENAME COLUMN id TO x", "RENAME COLUMN i32 TO id", "RENAME COLUMN x TO i32"),
        first_seen="* EXCEPT (id, i32), id AS i32, i32 AS id",
    ),
    "promoted in buckets": Change(("bucket(8, i32)",), ("ALTER COLUMN i32 TYPE BIGINT",)),
    "promoted as it is": Change(("i32",), ("ALTER COLUMN i32 TYPE BIGINT",)),
    "dropped": Change(
        ("d", "bucket(8, id)"),
        ("DROP PARTITION FIELD d", "DROP COLUMN d"),
        second="* EXCEPT (d)",
        first_seen="* EXCEPT (d)",
    ),
    "dropped and added again": Change(
        ("d", "bucket(8, id)"),
        (
            "DROP PARTITION FIELD d",
            "DROP COLUMN d",
            "ADD COLUMN d DATE",
            "ADD PARTITION FIELD months(d)",
        ),
        second="* EXCEPT (d), d",
        first_seen="* EXCEPT (d), CAST(NULL AS DATE) AS d",
        second_seen="* EXCEPT (d), d",
    ),
    "added with a default": Change(
        ("bucket(8, id)",),
        ("ADD COLUMN z STRING DEFAULT 'b3'", "REPLACE PARTITION FIELD bucket(8, id) WITH z"),
        second="*, b",
        first_seen="*, 'b3' AS z",
        second_seen="*, b AS z",
    ),
}
# The change, the other side, the condition, and the shuffles.
JOINED = [
    ("swapped names", ["bucket(8, id)"], "l.i32 = r.id", range(1)),
    ("swapped names", ["bucket(8, id)"], "l.id = r.id", range(1, 3)),
    ("promoted in buckets", ["bucket(4, id)"], "l.i32 = r.id", range(1)),
    ("promoted as it is", ["truncate(5, id)"], "l.i32 = r.id", range(1)),
    ("dropped", ["bucket(4, id)", "d"], "l.id = r.id", range(1)),
    (
        "dropped and added again",
        ["months(d)", "bucket(4, id)"],
        "l.id = r.id AND l.d <=> r.d",
        range(1),
    ),
    ("added with a default", ["b"], "l.z = r.b", range(3)),
]


@pytest.mark.parametrize(("change", "right", "on", "shuffles"), JOINED)
def test_columns_that_changed_are_joined_as_what_they_are(
    sides: Sides, change: str, right: list[str], on: str, shuffles: range
) -> None:
    tables = {"l": CHANGES[change].make(sides), "r": sides.table("r", *right)}
    plain = {"l": "l_changed", "r": "r_plain"}
    for kind in ("full", "semi"):
        sql = JOINS[kind].format(on=on).replace("l.*", "l.v, l.s")
        assert_join(sides.spark, sql, tables, plain, shuffles, adaptive=(True,))


SPECS = {
    "three bucket counts": (
        ["bucket(8, id)"],
        [
            "REPLACE PARTITION FIELD bucket(8, id) WITH bucket(16, id)",
            "REPLACE PARTITION FIELD bucket(16, id) WITH bucket(12, id)",
        ],
        ["bucket(16, id)"],
        "l.id = r.id",
    ),
    "column, then ever shorter beginnings": (
        ["s"],
        [
            "REPLACE PARTITION FIELD s WITH truncate(3, s)",
            "REPLACE PARTITION FIELD truncate(3, s) WITH truncate(2, s)",
        ],
        ["truncate(4, s)"],
        "l.s = r.s",
    ),
    "two columns, then one hash of both": (
        ["a", "b"],
        ["REPLACE PARTITION FIELD a WITH multi_bucket(8, a, b)", "DROP PARTITION FIELD b"],
        ["multi_bucket(4, a, b)"],
        "l.a = r.a AND l.b = r.b",
    ),
    "fields in another order": (
        ["region", "bucket(8, id)"],
        ["DROP PARTITION FIELD region", "ADD PARTITION FIELD region"],
        ["region", "bucket(8, id)"],
        "l.region = r.region AND l.id = r.id",
    ),
    "levels one by one": (
        ["year(ts)"],
        ["ADD PARTITION FIELD month(ts)", "ADD PARTITION FIELD hours(ts)"],
        ["months(ts)"],
        "l.ts = r.ts",
    ),
}


@pytest.mark.parametrize("case", SPECS)
def test_every_version_of_a_spec_has_rows(sides: Sides, case: str) -> None:
    before, changes, right, on = SPECS[case]
    parts = len(changes) + 1
    left = sides.fresh("l", *before, where=f"v % {parts} = 0")
    for number, change in enumerate(changes, 1):
        sides.spark.sql(f"ALTER TABLE {left} {change}")
        sides.spark.sql(f"INSERT INTO {left} SELECT * FROM l_plain WHERE v % {parts} = {number}")
    check(sides, {"l": left, "r": sides.table("r", *right)}, on, 0, ("full", "semi"))


@pytest.fixture
def versions(sides: Sides) -> Iterator[dict[str, str]]:
    """Views of one table: without rows, with the first half of them, and as it is now."""
    name = f"{sides.namespace}.versions"
    sides.spark.sql(
        f"CREATE TABLE {name} PARTITIONED BY (bucket(8, id)) AS SELECT * FROM l_plain WHERE FALSE"
    )
    seen = {"none": version_of(sides, name)}
    sides.spark.sql(f"INSERT INTO {name} SELECT * FROM l_plain WHERE v % 2 = 0")
    seen["half"] = version_of(sides, name)
    sides.spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD bucket(8, id) WITH s")
    seen["half, new spec"] = version_of(sides, name)
    sides.spark.sql(f"INSERT INTO {name} SELECT * FROM l_plain WHERE v % 2 <> 0")
    for number, version in enumerate(seen.values()):
        then = sides.spark.sql(f"SELECT * FROM {name} VERSION AS OF {version}")
        then.createOrReplaceTempView(f"then{number}")
    yield {view: f"then{number}" for number, view in enumerate(seen)}
    sides.spark.sql(f"DROP TABLE {name}")


def version_of(sides: Sides, table: str) -> int:
    return pennon.open(sides.location_of(table)).snapshot.version


def test_an_older_version_is_joined_by_its_own_partitioning(
    sides: Sides, versions: dict[str, str]
) -> None:
    sides.spark.sql("SELECT * FROM l_plain WHERE v % 2 = 0").createOrReplaceTempView("l_half")
    sides.spark.sql("SELECT * FROM l_plain WHERE FALSE").createOrReplaceTempView("l_none")
    rows = {"none": "l_none", "half": "l_half", "half, new spec": "l_half"}
    for when, view in versions.items():
        tables = {"l": view, "r": sides.table("r", "bucket(4, id)")}
        plain = {"l": rows[when], "r": "r_plain"}
        sql = JOINS["full"].format(on="l.id = r.id")
        assert_join(sides.spark, sql, tables, plain, 0, adaptive=(True,))


def test_names_that_have_to_be_quoted(sides: Sides) -> None:
    name = f"{sides.namespace}.`a. table`"
    sides.spark.sql(
        f"CREATE TABLE {name} (`a-b` BIGINT, `c d` STRING, `Ünï` DATE, `SELECT` INT, v DOUBLE)"
        " PARTITIONED BY (bucket(8, `a-b`), truncate(2, `c d`), months(`Ünï`), `SELECT`)"
    )
    sides.spark.sql(f"INSERT INTO {name} SELECT id, s, d, a, v FROM l_plain")
    sides.spark.sql(
        "SELECT id AS `a-b`, s AS `c d`, d AS `Ünï`, a AS `SELECT`, v FROM l_plain"
    ).createOrReplaceTempView("l_odd")
    plain = {"l": "l_odd", "r": "r_plain"}
    for right, on in (
        ("bucket(4, id)", "l.`A-B` = r.id"),
        ("truncate(1, s)", "l.`c d` = r.s"),
        ("d", "l.`ünï` = r.d"),
        ("a", "l.`select` = r.a"),
    ):
        tables = {"l": name, "r": sides.table("r", right)}
        sql = f"SELECT l.v, r.v FROM l FULL JOIN r ON {on}"
        assert_join(sides.spark, sql, tables, plain, 0, adaptive=(True,))
