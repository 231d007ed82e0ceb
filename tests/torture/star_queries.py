"""Random queries over a star of small tables: joins of every kind, aggregates at every height.

All results are exact in any order of the rows: sums are of integers and decimals, floats are only
compared. Columns have NULLs, keys have duplicates and misses, one table is empty.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FACTS: Final = """
SELECT IF(n % 37 = 0, NULL, n % 300) AS id, CAST(IF(n % 11 = 0, NULL, n % 45) AS INT) AS ck,
  CAST(n % 23 AS INT) AS pk, DATE'2020-01-01' + CAST(n % 150 AS INT) AS d, CAST(n % 7 AS INT) AS q,
  CAST(IF(n % 5 = 0, NULL, n * 1.25 - 400) AS DECIMAL(12, 2)) AS amt,
  CASE n % 5 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN -0D WHEN 2 THEN 0D WHEN 3 THEN NULL ELSE n / 4D
    END AS v, CONCAT('s', n % 13) AS s
FROM (SELECT id AS n FROM RANGE({rows}))
"""
TABLES: Final[Mapping[str, tuple[str, str]]] = {
    "f": ("PARTITIONED BY (bucket(4, id))", _FACTS.format(rows=800)),
    "g": ("PARTITIONED BY (months(d))", _FACTS.format(rows=500)),
    "i": (
        "PARTITIONED BY (bucket(4, id))",
        """SELECT n % 280 AS id, CAST(n % 9 AS INT) AS pk, CAST(n % 5 AS INT) AS q,
        CAST(n * 0.5 AS DECIMAL(10, 2)) AS amt, CONCAT('s', n % 4) AS s
        FROM (SELECT id AS n FROM RANGE(400))""",
    ),
    "c": (
        "PARTITIONED BY (bucket(2, ck))",
        """SELECT CAST(IF(n % 10 = 0, NULL, n % 40) AS INT) AS ck, CAST(n % 4 AS INT) AS rk,
        CONCAT('n', n) AS s, CAST(n % 6 AS INT) AS q
        FROM (SELECT id AS n FROM RANGE(60))""",
    ),
    "p": (
        "PARTITIONED BY (bucket(2, pk))",
        """SELECT CAST(n AS INT) AS pk, CONCAT('b', n % 5) AS s, CAST(n % 8 AS INT) AS q
        FROM (SELECT id AS n FROM RANGE(20))""",
    ),
    "r": (
        "",
        "SELECT CAST(n AS INT) AS rk, CONCAT('r', n) AS s FROM (SELECT id AS n FROM RANGE(3))",
    ),
    "t": (
        "",
        """SELECT DATE'2020-01-01' + CAST(n AS INT) AS d, CAST(n % 9 AS INT) AS q,
        CONCAT('m', n % 12) AS s FROM (SELECT id AS n FROM RANGE(160))""",
    ),
    "e": (
        "",
        """SELECT CAST(n AS INT) AS ck, CAST(n AS INT) AS q, CONCAT('e', n) AS s
        FROM (SELECT id AS n FROM RANGE(3)) WHERE n > 5""",
    ),
}
_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "f": ("id", "ck", "pk", "d", "q", "amt", "v", "s"),
    "g": ("id", "ck", "pk", "d", "q", "amt", "v", "s"),
    "i": ("id", "pk", "q", "amt", "s"),
    "c": ("ck", "rk", "s", "q"),
    "p": ("pk", "s", "q"),
    "r": ("rk", "s"),
    "t": ("d", "q", "s"),
    "e": ("ck", "q", "s"),
}
_LARGE: Final = ("f", "g", "i")
_KEYS: Final = ("id", "ck", "pk", "rk", "d")
_TEXTS: Final = (
    "rpad({c}, 4, 'x') > 's1'",
    "concat_ws('-', {c}, 'a') < 's2'",
    "reverse({c}) > '1'",
)
_NUMBERS: Final = ("floor({c}) <= 100", "ceil({c} / 3) > 10", "sign({c}) < 0")
_DAYS: Final = ("next_day({c}, 'TUE') > DATE'2020-02-05'", "last_day({c}) < DATE'2020-03-15'")
_FILTERS: Final = {
    "q": (
        "{c} < 4",
        "{c} = 3",
        "{c} IN (1, 2, 5)",
        "{c} IS NOT NULL",
        "NOT {c} > 5",
        "pmod({c} - 3, 4) = 1",
    ),
    "s": ("{c} = 's1'", "{c} <> 'b2'", "{c} LIKE 's%'", "{c} >= 'n3'", "{c} IS NULL", *_TEXTS),
    "amt": ("{c} > 100", "{c} BETWEEN -50 AND 900", "{c} IS NULL", "{c} < 0", *_NUMBERS),
    "d": ("{c} >= DATE'2020-03-01'", "{c} < DATE'2020-02-10'", "year({c}) = 2020", *_DAYS),
    "ck": ("{c} > 10", "{c} IS NOT NULL"),
    "pk": ("{c} < 12",),
    "id": ("{c} < 200", "{c} IN (1, 7, 30, 31, 99)"),
    "rk": ("{c} <> 1",),
    "v": ("{c} = 0", "{c} > 3", "sqrt({c}) < 4", "signum({c}) >= 0"),
}


class StarQueries:
    """Writes random queries; tables are named as in ``TABLES``."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - queries, not secrets
        self.number = 0

    def query(self) -> str:
        """Write one."""
        body = self.select()
        choice = self.rng.random()
        if choice < 0.1:
            kind = self.rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
            name = self.rng.choice(["q", "s"])
            one, other = (self.rng.choice(self.tables_with(name)) for _ in range(2))
            return f"SELECT {name} FROM {one} {kind} SELECT {name} FROM {other}"
        if choice < 0.2:
            return f"WITH t AS ({body}) SELECT count(*), count(DISTINCT k0), max(k0) FROM t"
        if choice < 0.3:
            return f"WITH t AS ({body}) SELECT * FROM t WHERE k0 = (SELECT max(k0) FROM t)"
        return body

    def tables_with(self, column: str) -> list[str]:
        return [table for table, columns in _COLUMNS.items() if column in columns]

    def name(self) -> str:
        self.number += 1
        return f"t{self.number}"

    def condition(self, alias: str, table: str) -> str:
        column = self.rng.choice([each for each in _COLUMNS[table] if each in _FILTERS])
        return self.rng.choice(_FILTERS[column]).format(c=f"{alias}.{column}")

    def relation(self, table: str) -> tuple[str, Sequence[str]]:
        """Write a table, or a part or an aggregate of one, for FROM; give its columns."""
        alias, choice = self.name(), self.rng.random()
        if choice < 0.6:
            return f"{table}", _COLUMNS[table]
        where = self.condition(alias, table)
        if choice < 0.75:
            return f"(SELECT * FROM {table} {alias} WHERE {where})", _COLUMNS[table]
        if choice < 0.85:
            return self.united(table)
        if choice < 0.9:
            # In this order rows that tie are the same rows.
            order = ", ".join(f"{each} {self.direction()}" for each in _COLUMNS[table])
            most = self.rng.choice([1, 7, 40])
            return f"(SELECT * FROM {table} ORDER BY {order} LIMIT {most})", _COLUMNS[table]
        keys = [each for each in _COLUMNS[table] if each in _KEYS][:2]
        having = self.rng.choice(["", " HAVING count(*) > 2", " HAVING max(q) > 2"])
        having = having if "q" in _COLUMNS[table] else ""
        sql = f"SELECT {', '.join(keys)}, CAST(count(*) AS INT) AS q, max(s) AS s FROM {table}"
        return f"({sql} GROUP BY {', '.join(keys)}{having})", (*keys, "q", "s")

    def direction(self) -> str:
        return self.rng.choice(["", "", "DESC", "NULLS LAST", "DESC NULLS FIRST"])

    def united(self, table: str) -> tuple[str, Sequence[str]]:
        """Write what two tables have in common, the rows of both beside each other."""
        other = self.rng.choice(list(_COLUMNS))
        shared = [each for each in _COLUMNS[table] if each in _COLUMNS[other]]
        listed = ", ".join(shared)
        texts = []
        for each in (table, other):
            alias = self.name()
            where = f" WHERE {self.condition(alias, each)}" if self.rng.random() < 0.5 else ""
            texts.append(f"SELECT {listed} FROM {each} {alias}{where}")
        return f"({' UNION ALL '.join(texts)})", shared

    def from_clause(self) -> tuple[str, dict[str, Sequence[str]]]:
        first = self.rng.choice(["f", "f", "f", "g", "g", "i", "c"])
        sql, columns = self.relation(first)
        alias = self.name()
        visible = {alias: columns}
        sql = f"{sql} {alias}"
        for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3, 4])):
            shared = [
                (other, mine, key)
                for other in _COLUMNS
                for mine, known in visible.items()
                for key in _KEYS
                if key in known
                and key in _COLUMNS[other]
                # Large tables meet by their fine key alone, or rows would multiply.
                and (key == "id" or other not in _LARGE)
            ]
            if not shared:
                break
            other, mine, key = self.rng.choice(shared)
            right, right_columns = self.relation(other)
            if key not in right_columns:
                continue
            new = self.name()
            kinds = ["JOIN"] * 4 + ["LEFT JOIN"] * 2 + ["RIGHT JOIN", "FULL JOIN"]
            kind = self.rng.choice([*kinds, "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
            equals = self.rng.choice(["=", "=", "=", "=", "<=>"])
            on = f"{mine}.{key} {equals} {new}.{key}"
            if self.rng.random() < 0.2 and "q" in right_columns and "q" in visible[mine]:
                on += f" AND {mine}.q <= {new}.q"
            sql += f" {kind} {right} {new} ON {on}"
            if "SEMI" not in kind and "ANTI" not in kind:
                visible[new] = right_columns
        return sql, visible

    def subquery_condition(self, visible: Mapping[str, Sequence[str]]) -> str | None:
        candidates = [
            (alias, key, table)
            for alias, columns in visible.items()
            for key in _KEYS
            if key in columns
            for table in self.tables_with(key)
        ]
        if not candidates:
            return None
        alias, key, table = self.rng.choice(candidates)
        inner = self.name()
        where = self.condition(inner, table)
        match self.rng.randrange(7):
            case 0:
                return f"{alias}.{key} IN (SELECT {key} FROM {table} {inner} WHERE {where})"
            case 1:
                return f"{alias}.{key} NOT IN (SELECT {key} FROM {table} {inner} WHERE {where})"
            case 2:
                correlated = f"{inner}.{key} = {alias}.{key} AND {where}"
                return f"EXISTS (SELECT 1 FROM {table} {inner} WHERE {correlated})"
            case 3:
                correlated = f"{inner}.{key} = {alias}.{key} AND {where}"
                return f"NOT EXISTS (SELECT 1 FROM {table} {inner} WHERE {correlated})"
            case 4 if "q" in visible[alias] and "q" in _COLUMNS[table]:
                correlated = f"{inner}.{key} = {alias}.{key}"
                return f"{alias}.q >= (SELECT max(q) FROM {table} {inner} WHERE {correlated})"
            case 6 if "q" in visible[alias]:
                correlated = f"{inner}.{key} = {alias}.{key} AND {where}"
                word = self.rng.choice(["", "NOT "])
                exists = f"{word}EXISTS (SELECT 1 FROM {table} {inner} WHERE {correlated})"
                return f"({alias}.q = 2 OR {exists})"
            case 5 if "q" in visible[alias] and key != "d":
                counted = f"{table} {inner} WHERE {where} AND {key} = 7"
                return f"{alias}.q > (SELECT count(*) FROM {counted})"
        return None

    def select(self) -> str:
        source, visible = self.from_clause()
        every = [f"{alias}.{column}" for alias, columns in visible.items() for column in columns]
        conditions = []
        if self.rng.random() < 0.5:
            column = self.rng.choice(every)
            if column.split(".")[1] in _FILTERS:
                conditions.append(self.rng.choice(_FILTERS[column.split(".")[1]]).format(c=column))
        if self.rng.random() < 0.4:
            conditions.append(self.subquery_condition(visible) or "TRUE")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        keys = self.rng.sample(every, min(len(every), self.rng.choice([1, 1, 2, 3])))
        named = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
        match self.rng.randrange(8):
            case 0:
                return f"SELECT {named} FROM {source}{where}"
            case 1:
                return f"SELECT DISTINCT {named} FROM {source}{where}"
            case 2:
                windows = f"SELECT {named}, {self.windows(keys, every)} FROM {source}{where}"
                first = windows.removeprefix(f"SELECT {named}, ")
                numbered = first.startswith(("rank(", "dense_rank(", "row_number(", "count("))
                most = self.rng.choice(["", " WHERE w0 <= 2", " WHERE w0 = 1"]) if numbered else ""
                return f"SELECT * FROM ({windows}){most}"
            case 3:
                return f"SELECT count(*) AS k0, {self.aggregates(every)} FROM {source}{where}"
            case 4:
                by = ", ".join(keys)
                calls = self.aggregates(every)
                return f"SELECT {named}, {calls} FROM {source}{where} GROUP BY ROLLUP({by})"
        by, calls = ", ".join(keys), self.aggregates(every)
        having = self.rng.choice(["", "", " HAVING count(*) > 1"])
        return f"SELECT {named}, {calls} FROM {source}{where} GROUP BY {by}{having}"

    def windows(self, keys: Sequence[str], every: Sequence[str]) -> str:
        """Write functions over windows; in their order, rows that tie are the same rows."""
        order = ", ".join(f"{each} {self.direction()}" for each in every)
        partition = self.rng.choice([f"PARTITION BY {', '.join(keys)} "] * 5 + [""])
        calls = []
        for at in range(self.rng.choice([1, 1, 2, 3])):
            column, other = self.rng.choice(every), self.rng.choice(keys)
            ranks = ["rank()", "dense_rank()", "cume_dist()", "percent_rank()"]
            moves = ["row_number()", "ntile(3)", f"lag({column})", f"lead({column}, 2)"]
            framed = [f"count({column})", f"min({column})", f"first_value({column})", "count(*)"]
            if column.endswith((".q", ".amt", ".pk")):
                framed += [f"sum({column})", f"avg({column})"]
            match self.rng.randrange(4):
                case 0:
                    over = f"{self.rng.choice(ranks)} OVER ({partition}ORDER BY {other})"
                case 1:
                    over = f"{self.rng.choice(moves)} OVER ({partition}ORDER BY {order})"
                case 2:
                    within = f"{partition}ORDER BY {order} {self.frame()}"
                    over = f"{self.rng.choice(framed)} OVER ({within})"
                case _:
                    over = f"{self.rng.choice(framed[:2])} OVER ({partition.strip()})"
            calls.append(f"{over} AS w{at}")
        return ", ".join(calls)

    def frame(self) -> str:
        """Write a frame."""
        start = ["UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW"]
        end = ["CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING"]
        if self.rng.random() < 0.4:
            return self.rng.choice(["", f"RANGE BETWEEN CURRENT ROW AND {end[2]}"])
        return f"ROWS BETWEEN {self.rng.choice(start)} AND {self.rng.choice(end)}"

    def aggregates(self, every: Sequence[str]) -> str:
        calls = []
        for at in range(self.rng.choice([1, 2, 3])):
            column = self.rng.choice(every)
            kinds = ["count({c})", "min({c})", "max({c})", "count(DISTINCT {c})"]
            if column.endswith((".q", ".amt", ".pk")):
                kinds += [
                    "sum({c})",
                    "sum({c})",
                    "avg({c})",
                    "sum(DISTINCT {c})",
                    "max(floor({c}))",
                ]
            calls.append(f"{self.rng.choice(kinds).format(c=column)} AS a{at}")
        return ", ".join(calls)
