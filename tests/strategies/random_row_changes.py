"""Random statements that change rows, in words that Spark and DuckDB both take."""

from __future__ import annotations

import random
from dataclasses import dataclass

LAYOUTS = (
    "",
    "PARTITIONED BY (k)",
    "PARTITIONED BY (bucket(3, id))",
    "PARTITIONED BY (k, bucket(2, id))",
    "PARTITIONED BY (months(d))",
    "PARTITIONED BY (truncate(1, k), years(d))",
    "PARTITIONED BY (bucket(4, id, k))",
    "PARTITIONED BY (q)",
    "PARTITIONED BY (days(m), bucket(2, q))",
    "PARTITIONED BY (y)",
    "PARTITIONED BY (bucket(3, y), hours(m))",
)
EVOLUTIONS = (
    "ADD PARTITION FIELD bucket(2, id)",
    "ADD PARTITION FIELD k",
    "ADD PARTITION FIELD years(d)",
    "ADD PARTITION FIELD bucket(2, y)",
    "ADD PARTITION FIELD months(m)",
)
NAMES = ("id", "k", "d", "v", "q", "m", "y", "n")
# The type of n is written in each engine's words.
COLUMNS = (
    "id BIGINT, k STRING, d DATE, v INT, q DECIMAL(20, 3), m TIMESTAMP_NTZ, y BINARY, n {struct}"
)
_DECIMALS = ("0", "0.001", "-1.5", "12.345", "9000000000000000.125", "NULL")
_MOMENTS = (
    *("'2021-12-31 23:59:59'", "'2021-12-31 22:00:00.000001'", "'2022-01-01 00:00:00'"),
    *("'1969-12-31 23:59:59.999999'", "NULL"),
)
_BYTES = ("''", "'ab'", "'abc'", "'zz'", "NULL")
_KEYS = ("'a'", "'b'", "'bc'", "'ä'", "''", "NULL")
_CONDITIONS = (
    *("v > 50", "v % 7 = 3", "id BETWEEN 10 AND 30", "id IN (1, 2, 77)", "k = 'a'", "k IS NULL"),
    *("k IS NOT NULL AND v < 20", "d < DATE '2020-02-01'", "d IS NULL OR id < 5", "NOT (v > 40)"),
    *("k = 'b' AND d >= DATE '2020-01-15'", "id % 11 = 0", "length(k) = 2", "v IS NULL"),
    *("k IN ('a', 'ä') OR id > 90", "1 = 1", "id = 42", "coalesce(k, 'a') = 'a'"),
    *("x.q > 10.5", "x.q = 0.001", "x.q IN (0, -1.5, 9000000000000000.125)", "x.q IS NULL"),
    *("m >= CAST('2021-12-31 23:00:00' AS TIMESTAMP_NTZ)", "m IS NULL OR x.q < 0"),
    *("y = CAST('ab' AS BINARY)", "y IS NOT NULL AND v > 30", "x.n.a > 40", "x.n.b = 'b'"),
)
_SUBQUERIES = (
    "id IN (SELECT id FROM {other} WHERE v > 30)",
    "id NOT IN (SELECT id FROM {other} WHERE id IS NOT NULL AND k = 'a')",
    "EXISTS (SELECT 1 FROM {other} o WHERE o.id = x.id AND o.v < 50)",
    "v > (SELECT avg(v) FROM {other})",
    "k IN (SELECT k FROM {other} WHERE v > 70)",
    "k NOT IN (SELECT k FROM {other} WHERE v > 90)",
    "k NOT IN (SELECT k FROM {other} WHERE v > 90 AND k IS NOT NULL)",
    "EXISTS (SELECT 1 FROM {other} o WHERE o.k IS NOT DISTINCT FROM x.k AND o.v > 80)",
    "NOT EXISTS (SELECT 1 FROM {other} o WHERE o.k = x.k AND o.d = x.d)",
    "(k, d) IN (SELECT k, d FROM {other})",
)
_CHANGES = (
    *("v = v + 1", "k = 'b'", "k = NULL", "d = DATE '2020-03-03', v = 0", "id = id + 100"),
    *("k = k || 'x', v = NULL", "d = NULL"),
    *("q = q + 1.5", "q = NULL, m = CAST('1969-12-31 23:59:59.999999' AS TIMESTAMP_NTZ)"),
    *("y = CAST('zz' AS BINARY)", "y = NULL", "n = named_struct('a', v, 'b', k)", "n = NULL"),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; ``{table}`` and ``{other}`` stand for names."""

    sql: str
    is_for_both: bool = True


def rows(choose: random.Random, count: int, first_id: int = 0, *, is_unique: bool) -> str:
    """Give rows as a query of literals, NULLs among them."""
    ids = list(range(first_id, first_id + count))
    if not is_unique:
        ids = [choose.randrange(120) for _ in ids]
    made = [
        f"({number if choose.random() < 0.97 or is_unique else 'NULL'},"
        f" {choose.choice(_KEYS)},"
        f" {_date(choose)}, {choose.randrange(100) if choose.random() < 0.95 else 'NULL'},"
        f" {choose.choice(_DECIMALS)}, {choose.choice(_MOMENTS)}, {choose.choice(_BYTES)})"
        for number in ids
    ]
    values = ", ".join(made)
    return (
        "SELECT CAST(a AS BIGINT) AS id, CAST(b AS STRING) AS k, c AS d, CAST(e AS INT) AS v,"
        " CAST(f AS DECIMAL(20, 3)) AS q, CAST(g AS TIMESTAMP_NTZ) AS m, CAST(h AS BINARY) AS y,"
        " CASE WHEN e % 9 <> 4 THEN named_struct('a', CAST(e AS INT), 'b', CAST(b AS STRING)) END"
        f" AS n FROM (VALUES {values}) AS x(a, b, c, e, f, g, h)"
    )


def _date(choose: random.Random) -> str:
    if choose.random() < 0.06:
        return "CAST(NULL AS DATE)"
    return f"DATE '20{choose.choice((19, 20))}-0{choose.randint(1, 3)}-{choose.randint(10, 28)}'"


def statement(choose: random.Random) -> Statement:
    """Make one statement."""
    kind = choose.random()
    if kind < 0.05:
        return Statement("ALTER TABLE {table} " + choose.choice(EVOLUTIONS), is_for_both=False)
    if kind < 0.2:
        query = rows(choose, choose.randint(1, 40), is_unique=False)
        return Statement("INSERT INTO {table} " + query)
    if kind < 0.4:
        return Statement("DELETE FROM {table} AS x WHERE " + _condition(choose))
    if kind < 0.65:
        return Statement(
            "UPDATE {table} AS x SET " + choose.choice(_CHANGES) + " WHERE " + _condition(choose)
        )
    return Statement(_merge(choose))


def _condition(choose: random.Random) -> str:
    pool = _SUBQUERIES if choose.random() < 0.25 else _CONDITIONS
    return choose.choice(pool)


def _merge(choose: random.Random) -> str:
    source = rows(choose, choose.randint(1, 30), choose.randrange(110), is_unique=True)
    if choose.random() < 0.4:
        least = choose.randrange(100)
        source = (
            "SELECT id, max(k) AS k, max(d) AS d, max(v) AS v, max(q) AS q, max(m) AS m,"
            " max(y) AS y, named_struct('a', max(v), 'b', max(k)) AS n"
            f" FROM {{other}} WHERE v >= {least} GROUP BY id"
        )
    on = choose.choice(
        (
            "t.id = s.id",
            "t.id = s.id AND t.k = s.k",
            "t.id = s.id AND t.d = s.d",
            "t.id = s.id AND t.k = 'a'",
            "t.id = s.id AND t.k IS NOT DISTINCT FROM s.k",
            "t.id = s.id AND t.q = s.q",
            "t.id = s.id AND t.y IS NOT DISTINCT FROM s.y AND t.m IS NOT DISTINCT FROM s.m",
            "t.id IS NOT DISTINCT FROM s.id AND t.k IS NOT DISTINCT FROM s.k AND t.d = s.d",
        )
    )
    clauses = []
    if choose.random() < 0.4:
        clauses.append("WHEN MATCHED AND t.v > 60 THEN DELETE")
    if choose.random() < 0.4:
        clauses.append(
            choose.choice(
                (
                    "WHEN MATCHED AND s.v < 30 THEN UPDATE SET k = s.k, d = s.d",
                    "WHEN MATCHED AND s.v < 30 THEN UPDATE SET q = s.q, y = s.y, n = s.n",
                    "WHEN MATCHED AND t.n.a < 50 THEN UPDATE SET m = s.m, q = t.q - 1",
                )
            )
        )
    if choose.random() < 0.6:
        clauses.append(
            choose.choice(
                ("WHEN MATCHED THEN UPDATE SET v = s.v", "WHEN MATCHED THEN UPDATE SET k = s.k")
            )
        )
    if choose.random() < 0.7 or not clauses:
        condition = choose.choice(("", " AND s.v > 20"))
        insert = choose.choice(
            (
                "(id, k, d, v) VALUES (s.id, s.k, s.d, s.v)",
                "(id, k, d, v, q, m, y, n) VALUES (s.id, s.k, s.d, s.v, s.q, s.m, s.y, s.n)",
            )
        )
        clauses.append(f"WHEN NOT MATCHED{condition} THEN INSERT {insert}")
    if choose.random() < 0.3:
        clauses.append(
            choose.choice(
                (
                    "WHEN NOT MATCHED BY SOURCE AND t.v < 10 THEN DELETE",
                    "WHEN NOT MATCHED BY SOURCE AND t.k = 'b' THEN UPDATE SET v = t.v + 2",
                )
            )
        )
    return f"MERGE INTO {{table}} AS t USING ({source}) AS s ON {on} {' '.join(clauses)}"
