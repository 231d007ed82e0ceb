"""What a random query does with its joined rows: it selects, groups, ranks, unites or repeats."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.strategies.query_tree import Grouped, Renamed, Tree, United, Windowed
from tests.strategies.random_queries import Query, QueryMaker, Relation
from tests.strategies.random_tables import Table

_AGGREGATES = [
    *("count(*)", "sum({v})", "max({v})", "min({v})", "avg({v})", "count({c})", "max({c})"),
    *("min({c})", "count(DISTINCT {v})", "count(DISTINCT {c})", "sum(CAST({v} AS DECIMAL(9, 1)))"),
    *("sum(CAST({v} AS BIGINT))", "sum(IF({v} > 20, 1, 0))", "count(*) FILTER (WHERE {v} < 30)"),
    *("sort_array(collect_list({v}))", "size(collect_set({c}))"),  # Spark computes them itself
]


def random_query(rng: random.Random, tables: Sequence[Table]) -> Query:
    """Write a query over some of the tables."""
    maker = QueryMaker(rng, tables)
    found = maker.relation()
    form = rng.random()
    if form < 0.1:
        return _self_joined(maker, found)
    if form < 0.18:
        return _united(maker, found, maker.relation())
    return _finished(maker, found)


def _finished(maker: QueryMaker, relation: Relation) -> Query:
    form = maker.rng.random()
    by = maker.some_of(relation, maker.some_keys())
    if form < 0.3 or not by:
        return _selected(maker, relation)
    if form < 0.7:
        return _grouped(maker, relation, by)
    if form < 0.78:
        pairs = tuple((column, column) for column in by)
        return Query(
            f"SELECT DISTINCT {', '.join(by)} FROM {relation.sql}", Grouped(relation.tree, pairs)
        )
    return _windowed(maker, relation, by)


def _selected(maker: QueryMaker, relation: Relation) -> Query:
    count = min(len(relation.columns), maker.rng.randint(1, 5))
    some = ", ".join(maker.rng.sample(relation.columns, k=count))
    if maker.chance(0.25):
        # In this order rows that tie are the same rows.
        most = maker.rng.choice([1, 5, 20])
        sql = f"SELECT {some} FROM {relation.sql} ORDER BY {some} LIMIT {most}"
        return Query(sql, relation.tree)
    return Query(f"SELECT {some} FROM {relation.sql}", relation.tree)


def _grouped(maker: QueryMaker, relation: Relation, by: Sequence[str]) -> Query:
    values = [column for column in relation.columns if column.endswith("_v")]
    value = maker.rng.choice(values) if values else "1"
    column = maker.rng.choice(relation.columns)
    chosen = maker.rng.sample(_AGGREGATES, k=maker.rng.randint(1, 3))
    calls = ", ".join(call.format(v=value, c=column) for call in chosen)
    is_distinct = any("DISTINCT" in call for call in chosen)
    if maker.chance(0.12):
        return Query(f"SELECT {calls} FROM {relation.sql}", Grouped(relation.tree, (), is_distinct))
    listed = ", ".join(by)
    having = f" HAVING count(*) > {maker.rng.randint(1, 3)}" if maker.chance(0.15) else ""
    sql = f"SELECT {listed}, {calls} FROM {relation.sql} GROUP BY {listed}{having}"
    return Query(sql, Grouped(relation.tree, tuple((column, column) for column in by), is_distinct))


def _windowed(maker: QueryMaker, relation: Relation, by: Sequence[str]) -> Query:
    values = [column for column in relation.columns if column.endswith("_v")]
    value = maker.rng.choice(values) if values else by[0]
    listed = ", ".join(by)
    tree = Windowed(relation.tree, tuple(by))
    if maker.chance(0.4):
        call = maker.rng.choice([f"count({value})", f"max({value})", "count(*)"])
        over = f"{call} OVER (PARTITION BY {listed})"
        return Query(f"SELECT {listed}, {value}, {over} AS total FROM {relation.sql}", tree)
    rank = maker.rng.choice(["rank()", "dense_rank()"])
    place = f"{rank} OVER (PARTITION BY {listed} ORDER BY {value} {maker.rng.choice(['', 'DESC'])})"
    ranked = f"SELECT {listed}, {value}, {place} AS place FROM {relation.sql}"
    sql = f"SELECT * FROM ({ranked}) WHERE place <= {maker.rng.randint(1, 3)}"
    if maker.chance(0.3):
        keys = tuple((column, column) for column in by)
        return Query(
            f"SELECT {listed}, count(*) FROM ({sql}) GROUP BY {listed}", Grouped(tree, keys)
        )
    return Query(sql, tree)


def _self_joined(maker: QueryMaker, relation: Relation) -> Query:
    """Name the relation in WITH, and join it with itself."""
    sides = []
    for side in ("l", "r"):
        columns = {f"{side}{column}": column for column in relation.columns}
        listed = ", ".join(f"{old} AS {new}" for new, old in columns.items())
        tree: Tree = Renamed(relation.tree, columns)
        sides.append(
            Relation(
                f"(SELECT {listed} FROM c)", tuple(columns), tree, relation.rows, relation.share
            )
        )
    joined = maker.joined(sides[0], sides[1], maker.some_keys())
    finished = _finished(maker, joined)
    return Query(f"WITH c AS (SELECT * FROM {relation.sql}) {finished.sql}", finished.tree)


def _united(maker: QueryMaker, one: Relation, other: Relation) -> Query:
    """Unite two relations, and perhaps group what comes out."""
    keys = [key for key in maker.some_keys() if one.of(key) and other.of(key)]
    if not keys:
        return _finished(maker, one)
    listed = ", ".join(f"q0_{key}" for key in keys)
    texts, trees = [], []
    for relation in (one, other):
        columns = {f"q0_{key}": maker.rng.choice(relation.of(key)) for key in keys}
        some = ", ".join(f"{old} AS {new}" for new, old in columns.items())
        texts.append(f"SELECT {some} FROM {relation.sql}")
        trees.append(Renamed(relation.tree, columns))
    tree: Tree = United(tuple(trees))
    sql = " UNION ALL ".join(texts)
    if maker.chance(0.5):
        pairs = tuple((f"q0_{key}", f"q0_{key}") for key in keys)
        sql = f"SELECT {listed}, count(*) FROM ({sql}) GROUP BY {listed}"
        tree = Grouped(tree, pairs)
    return Query(sql, tree)
