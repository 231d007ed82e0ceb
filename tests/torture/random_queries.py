"""Random queries over partitioned tables: two to four of them joined, then perhaps grouped."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

KEYS = [
    ("id",),
    ("id",),
    ("ts",),
    ("tsn",),
    ("d",),
    ("s",),
    ("region",),
    ("a", "b"),
    ("b", "a"),
    ("id", "ts"),
    ("region", "id"),
    ("id", "region"),
    ("a", "b", "region"),
]
JOINS = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
FILTERS = [
    "id > 3",
    "id IN (1, 2, 7, 11)",
    "region = 'eu'",
    "region IS NOT NULL",
    "a < 4 AND b IS NOT NULL",
    "ts >= TIMESTAMP'2019-12-31 00:00:00'",
    "d = DATE'2020-01-01'",
    "s LIKE 'a%'",
    "v < 120",
]
COLUMNS = ("id", "a", "b", "region", "s", "ts", "tsn", "d", "v")


@dataclass(frozen=True, slots=True)
class Relation:
    """A piece of SQL for FROM, and the columns that it gives."""

    sql: str
    columns: tuple[str, ...]


def random_query(rng: random.Random, tables: Sequence[str]) -> str:
    """Write a query over some of the tables."""
    relation = _leaf(rng, tables, 0, None)
    for number in range(1, rng.choice([2, 2, 2, 3, 3, 4])):
        relation = _joined(rng, relation, tables, number)
    return _finished(rng, relation)


def _leaf(
    rng: random.Random, tables: Sequence[str], number: int, keys: tuple[str, ...] | None
) -> Relation:
    table = rng.choice(tables)
    where = f" WHERE {rng.choice(FILTERS)}" if rng.random() < 0.3 else ""
    if keys is not None and rng.random() < 0.15:
        listed = ", ".join(f"{key} AS q{number}_{key}" for key in keys)
        counted = f"SELECT {listed}, count(*) AS q{number}_v FROM {table}{where}"
        sql = f"({counted} GROUP BY {', '.join(keys)})"
        return Relation(sql, (*(f"q{number}_{key}" for key in keys), f"q{number}_v"))
    listed = ", ".join(f"{column} AS q{number}_{column}" for column in COLUMNS)
    return Relation(
        f"(SELECT {listed} FROM {table}{where})", tuple(f"q{number}_{each}" for each in COLUMNS)
    )


def _joined(rng: random.Random, left: Relation, tables: Sequence[str], number: int) -> Relation:
    keys = rng.choice(KEYS)
    right = _leaf(rng, tables, number, keys)
    conditions = []
    for key in keys:
        sources = [each for each in left.columns if each.split("_", 1)[1] == key]
        if not sources:
            return left
        operator = "<=>" if rng.random() < 0.15 else "="
        conditions.append(f"{rng.choice(sources)} {operator} q{number}_{key}")
    extra = [each for each in left.columns if each.endswith("_v")]
    if extra and rng.random() < 0.2:
        conditions.append(f"{rng.choice(extra)} < q{number}_v")
    rng.shuffle(conditions)
    kind = rng.choice(JOINS)
    columns = left.columns if "SEMI" in kind or "ANTI" in kind else left.columns + right.columns
    sql = f"{left.sql} {kind} {right.sql} ON {' AND '.join(conditions)}"
    return Relation(f"(SELECT {', '.join(columns)} FROM {sql})", columns)


def _finished(rng: random.Random, relation: Relation) -> str:
    form = rng.random()
    if form < 0.4:
        some = rng.sample(relation.columns, k=min(len(relation.columns), rng.randint(1, 4)))
        return f"SELECT {', '.join(some)} FROM {relation.sql}"
    keys = rng.choice(KEYS)
    found = [
        next((each for each in relation.columns if each.split("_", 1)[1] == key), None)
        for key in keys
    ]
    by = ", ".join(each for each in found if each is not None)
    values = [each for each in relation.columns if each.endswith("_v")]
    if not by or not values:
        return f"SELECT * FROM {relation.sql}"
    value = rng.choice(values)
    if form < 0.7:
        last = f"count(DISTINCT {value})" if form < 0.5 else f"avg({value}), max({value})"
        aggregates = f"count(*), sum({value}), {last}"
        return f"SELECT {by}, {aggregates} FROM {relation.sql} GROUP BY {by}"
    if form < 0.8:
        return f"SELECT DISTINCT {by} FROM {relation.sql}"
    if form < 0.9:
        return f"SELECT {by}, {value}, sum({value}) OVER (PARTITION BY {by}) FROM {relation.sql}"
    rank = f"rank() OVER (PARTITION BY {by} ORDER BY {value})"
    ranked = f"SELECT {by}, {rank} AS place FROM {relation.sql}"
    return f"SELECT * FROM ({ranked}) WHERE place <= 2"
