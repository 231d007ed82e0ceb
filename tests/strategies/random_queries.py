"""Random queries over partitioned tables, each with the tree that the oracle reads.

A query has a theme: columns by which tables are partitioned. Most of its tables are, and most of
its joins, groupings and windows name them, so that about half of all queries need fewer shuffles
than without partitioning. The SQL names tables as ``{t7}``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.strategies.query_tree import Beside, Grouped, Joined, Leaf, Tree, United, Windowed
from tests.strategies.random_tables import COLUMNS, Table
from tests.torture.field_meeting import fit

JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}
KINDS = ["inner", "inner", "left", "right", "full", "semi", "anti"]
FILTERS = [
    *("id > 3", "id IN (1, 2, 7, 11)", "id % 3 = 1", "id = 7 OR a = 2", "NOT id > 20"),
    *("region = 'eu'", "region IS NOT NULL", "region <=> NULL", "dep IN ('a', 'b')"),
    *("a < 4 AND b IS NOT NULL", "b = 'b1' OR b IS NULL", "s LIKE 'a%'", "s >= 'b'"),
    *("ts >= TIMESTAMP'2019-12-31 00:00:00'", "ts BETWEEN '2019-12-30' AND '2020-02-01'"),
    *("year(ts) = 2020", "tsn < TIMESTAMP_NTZ'2020-01-01 00:00:00'"),
    *("d = DATE'2020-01-01'", "d > DATE'2019-12-31'", "month(d) = 12", "d IS NULL"),
    *("i8 = 3", "i16 <> 4", "i32 IN (0, 5)", "dec > 0.5", "bin = X'7831'", "flag", "NOT flag"),
    *("v < 40", "v >= 10 AND v < 60", "v < 0", "length(s) = 3", "coalesce(region, 'us') = 'us'"),
]
VALUES = {"id": 43, "a": 7, "b": 5, "region": 3, "dep": 3, "s": 12, "ts": 50, "tsn": 50, "d": 6}
VALUES |= {"i8": 11, "i16": 11, "i32": 11, "dec": 11, "bin": 9, "flag": 2}
_MOST_ROWS = 3_000
_SKEWED = 0.5
_WIDER = {"i8": "i16", "i16": "i32", "i32": "id", "a": "id"}
_MOST_LEAVES = 5


@dataclass(frozen=True, slots=True)
class Relation:
    """A piece of SQL for FROM, its columns, its tree, and about how many rows it has."""

    sql: str
    columns: tuple[str, ...]
    tree: Tree
    rows: float
    share: float = 0.0
    """The share of its rows that may have one key."""

    def of(self, base: str) -> list[str]:
        """List the columns that hold a column of a table."""
        return [column for column in self.columns if _base(column) == base]


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its SQL, and its tree."""

    sql: str
    tree: Tree


def _base(column: str) -> str:
    return column.split("_", 1)[1]


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns)


class QueryMaker:
    """Writes one query; every relation that it makes has a number of its own."""

    def __init__(self, rng: random.Random, tables: Sequence[Table]) -> None:
        self.rng = rng
        self.tables = tables
        partitioned = [table_ for table_ in tables if table_.common]
        anchor = rng.choice(partitioned)
        fields = rng.sample(anchor.common, k=rng.randint(1, len(anchor.common)))
        self.theme = tuple(dict.fromkeys(column for field in fields for column in field.columns))
        self.fitting = [
            table_.number
            for table_ in partitioned
            if all(any(fit(field, other) for other in table_.common) for field in fields)
        ]
        self.numbers = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    # -- relations

    def leaf(self, keys: Sequence[str]) -> Relation:
        """Choose a table, and how its rows are read."""
        form = self.rng.random()
        if form < 0.12:
            return self.summed_leaf(keys)
        if form < 0.16:
            return self.best_leaf(keys)
        if form < 0.2:
            parts = [
                self.rows_of(keys, prefix := f"q{self.numbers + 1}"),
                self.rows_of(keys, prefix),
            ]
            self.numbers += 1
            columns = tuple(column for column in parts[0].columns if column in parts[1].columns)
            sql = " UNION ALL ".join(f"SELECT {_listed(columns)} FROM {part.sql}" for part in parts)
            tree = United(tuple(part.tree for part in parts))
            return Relation(f"({sql})", columns, tree, sum(part.rows for part in parts))
        self.numbers += 1
        return self.rows_of(keys, f"q{self.numbers}")

    def table(self) -> Table:
        is_fitting = self.chance(0.85)
        return (
            self.tables[self.rng.choice(self.fitting)]
            if is_fitting
            else self.rng.choice(self.tables)
        )

    def rows_of(self, keys: Sequence[str], prefix: str) -> Relation:
        table = self.table()
        others = [column for column in COLUMNS if column not in keys and column != "v"]
        count = self.rng.choice([0, 1, 2, 4, len(others)])
        wanted = [*keys, "v", *self.rng.sample(others, count)]
        columns = {f"{prefix}_{column}": column for column in COLUMNS if column in wanted}
        where = f" WHERE {self.rng.choice(FILTERS)}" if self.chance(0.3) else ""
        listed = ", ".join(f"{own} AS {name}" for name, own in columns.items())
        share = _SKEWED if table.is_skewed else 0.0
        sql = f"(SELECT {listed} FROM {{t{table.number}}}{where})"
        return Relation(sql, tuple(columns), Leaf(table.number, columns), table.rows or 1, share)

    def summed_leaf(self, keys: Sequence[str]) -> Relation:
        below = self.leaf(keys)
        self.numbers += 1
        pairs = tuple((f"q{self.numbers}_{_base(key)}", key) for key in self.some_of(below, keys))
        listed = ", ".join(f"{old} AS {new}" for new, old in pairs)
        value = self.rng.choice(["count(*)", "sum({0})", "max({0})", "CAST(count({0}) AS DOUBLE)"])
        argument = next(iter(below.of("v")), "1")
        if self.chance(0.3):
            columns = tuple(new for new, _ in pairs)
            return Relation(
                f"(SELECT DISTINCT {listed} FROM {below.sql})",
                columns,
                Grouped(below.tree, pairs),
                40,
            )
        columns = (*(new for new, _ in pairs), f"q{self.numbers}_v")
        by = _listed([old for _, old in pairs])
        called = f"{value.format(argument)} AS {columns[-1]}"
        sql = f"SELECT {listed}, {called} FROM {below.sql} GROUP BY {by}"
        return Relation(f"({sql})", columns, Grouped(below.tree, pairs), min(below.rows, 40))

    def best_leaf(self, keys: Sequence[str]) -> Relation:
        self.numbers += 1
        below = self.rows_of(keys, f"q{self.numbers}")
        by = self.some_of(below, keys)
        value = below.of("v")[0]
        place = f"row_number() OVER (PARTITION BY {_listed(by)} ORDER BY {value})"
        ranked = f"SELECT {_listed(below.columns)}, {place} AS place FROM {below.sql}"
        sql = f"(SELECT {_listed(below.columns)} FROM ({ranked}) WHERE place <= 2)"
        return Relation(sql, below.columns, Windowed(below.tree, tuple(by)), below.rows)

    def some_of(self, relation: Relation, keys: Sequence[str]) -> list[str]:
        found = [self.rng.choice(relation.of(key)) for key in keys if relation.of(key)]
        self.rng.shuffle(found)
        return found

    def some_keys(self) -> list[str]:
        """Choose columns to join or to group by: the theme, less often more or fewer."""
        keys = list(self.theme)
        self.rng.shuffle(keys)
        if len(keys) > 1 and self.chance(0.15):
            keys.pop()
        if self.chance(0.2):
            extra = self.rng.choice(["region", "i32", "flag", "a", "s"])
            keys += [] if extra in keys else [extra]
        return keys if self.chance(0.93) else [self.rng.choice(["id", "s", "region", "i16"])]

    # -- joins

    def condition(
        self, left: Relation, right: Relation, keys: Sequence[str]
    ) -> tuple[str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] | None:
        """Compare the keys of two relations; None when they have none in common.

        Returns:
            The condition, the pairs that it compares, and those of them that it does by ``<=>``.
        """
        pairs: list[tuple[str, str]] = []
        null_safe: list[tuple[str, str]] = []
        texts: list[str] = []
        for key in keys:
            wider = _WIDER.get(key, key) if self.chance(0.1) else key
            sources, targets = left.of(key), right.of(wider) or right.of(key)
            if not sources or not targets:
                continue
            mine, theirs = self.rng.choice(sources), self.rng.choice(targets)
            pairs.append((mine, theirs))
            sides = [mine, theirs] if self.chance(0.5) else [theirs, mine]
            if self.chance(0.15):
                null_safe.append((mine, theirs))
                texts.append(" <=> ".join(sides))
            else:
                texts.append(" = ".join(sides))
        if not pairs:
            return None
        if self.chance(0.15) and left.of("v") and right.of("v"):
            operator = self.rng.choice(["<", ">=", "<>"])
            texts.append(f"{self.rng.choice(left.of('v'))} {operator} {right.of('v')[0]}")
        self.rng.shuffle(texts)
        return " AND ".join(texts), tuple(pairs), tuple(null_safe)

    def joined(self, left: Relation, right: Relation, keys: Sequence[str]) -> Relation:
        found = self.condition(left, right, keys)
        if found is None:
            return left
        condition, pairs, null_safe = found
        kind = self.rng.choice(KINDS)
        rows = self.rows_joined(left, right, [_base(mine) for mine, _ in pairs])
        if rows > _MOST_ROWS and kind not in ("semi", "anti"):
            kind = self.rng.choice(["semi", "anti"])
        is_half = kind in ("semi", "anti")
        columns = left.columns if is_half else left.columns + right.columns
        sql = f"{left.sql} {JOINS[kind]} {right.sql} ON {condition}"
        tree = Joined(kind, left.tree, right.tree, pairs, null_safe)
        share = left.share if is_half else max(left.share, right.share)
        return Relation(
            f"(SELECT {_listed(columns)} FROM {sql})",
            columns,
            tree,
            left.rows if is_half else rows,
            share,
        )

    def rows_joined(self, left: Relation, right: Relation, keys: Sequence[str]) -> float:
        values = 1
        for key in keys:
            values *= VALUES.get(key, 10)
        share = max(1 / values, left.share * right.share)
        return max(left.rows, right.rows, left.rows * right.rows * share)

    def restricted(self, relation: Relation) -> Relation:
        """Restrict a relation by a subquery."""
        keys = self.some_keys()
        other = self.leaf(keys)
        found = self.condition(relation, other, keys)
        if found is None:
            return relation
        condition, pairs, null_safe = found
        mine, theirs = (_listed([pair[side] for pair in pairs]) for side in (0, 1))
        columns = _listed(relation.columns)
        start = f"SELECT {columns} FROM {relation.sql}"
        form = self.rng.choice(["in", "exists", "exists", "not exists", "not in", "max", "each"])
        kind = "semi" if form in ("in", "exists") else "anti"
        # IN compares by =, whatever the condition does.
        compared = () if form == "in" else null_safe
        tree: Tree = Joined(kind, relation.tree, other.tree, pairs, compared)
        match form:
            case "in":
                mine = f"({mine})" if len(pairs) > 1 else mine
                sql = f"{start} WHERE {mine} IN (SELECT {theirs} FROM {other.sql})"
            case "exists" | "not exists":
                sql = f"{start} WHERE {form.upper()} (SELECT 1 FROM {other.sql} WHERE {condition})"
            case "not in":
                mine, theirs = pairs[0]
                known = f" WHERE {theirs} IS NOT NULL" if self.chance(0.7) else ""
                sql = f"{start} WHERE {mine} NOT IN (SELECT {theirs} FROM {other.sql}{known})"
                # Spark broadcasts that side, whatever its size.
                tree = Beside(relation.tree, other.tree)
            case _ if not other.of("v"):
                return relation
            case "max":
                value = self.rng.choice(relation.of("v") or relation.columns[:1])
                if not relation.of("v"):
                    return relation
                sql = f"{start} WHERE {value} < (SELECT max({other.of('v')[0]}) FROM {other.sql})"
                tree = Beside(relation.tree, Grouped(other.tree, ()))
            case _:
                return self.looked_up(relation, other, pairs)
        return replace(relation, sql=f"({sql})", tree=tree)

    def looked_up(
        self, relation: Relation, other: Relation, pairs: tuple[tuple[str, str], ...]
    ) -> Relation:
        """Add a column that a correlated scalar subquery computes."""
        self.numbers += 1
        name = f"q{self.numbers}_v"
        condition = " AND ".join(f"{theirs} = {mine}" for mine, theirs in pairs)
        maximum = f"SELECT max({other.of('v')[0]}) FROM {other.sql} WHERE {condition}"
        sql = f"(SELECT {_listed(relation.columns)}, ({maximum}) AS {name} FROM {relation.sql})"
        grouped = Grouped(other.tree, tuple((theirs, theirs) for _, theirs in pairs))
        tree = Joined("left", relation.tree, grouped, pairs)
        return replace(relation, sql=sql, columns=(*relation.columns, name), tree=tree)

    def relation(self) -> Relation:
        """Join two to four relations, perhaps some of them among themselves first."""
        keys = self.some_keys()
        found = self.leaf(keys)
        for _ in range(self.rng.choice([0, 1, 1, 1, 1, 2, 2, 3])):
            if self.numbers >= _MOST_LEAVES:
                break
            right = self.leaf(keys)
            if self.chance(0.12):
                right = self.joined(right, self.leaf(keys), keys)
            found = self.joined(found, right, keys)
            keys = keys if self.chance(0.75) else self.some_keys()
        if self.chance(0.25):
            found = self.restricted(found)
        return found
