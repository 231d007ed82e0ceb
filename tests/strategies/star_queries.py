"""Random queries over a star of small tables: joins of every kind, aggregates at every height.

All results are exact in any order of the rows: sums are of integers and decimals, floats are only
compared. Common table expressions are used twice, so that one plan meets its own columns again.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.strategies.star_calls import StarCalls
from tests.strategies.star_columns import CONDITIONS, KEYS, WHOLE_KEYS
from tests.strategies.star_tables import COLUMNS, LARGE
from tests.strategies.star_values import GROUPED, VALUES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OVER_UNREAD = (
    "SELECT count(*) FROM t",
    "SELECT p.pk, count(*) FROM p, t GROUP BY p.pk",
    "SELECT p.pk FROM p WHERE EXISTS (SELECT * FROM t)",
    "SELECT p.pk, NOT EXISTS (SELECT * FROM t) AS is_none FROM p",
    "SELECT 'a' AS mark, k0 FROM t UNION ALL SELECT 'b', k0 FROM t",
)


class StarQueries:
    """Writes random queries; tables are named as in ``TABLES``."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - queries, not secrets
        self.calls = StarCalls(self.rng)
        self.number = 0
        self.columns: dict[str, Sequence[str]] = dict(COLUMNS)
        self.large = set(LARGE)
        self.shared: dict[str, str] = {}

    def query(self) -> str:
        """Write one."""
        text = self.body()
        if not self.shared:
            return text
        begun = ", ".join(f"{name} AS {sql}" for name, sql in self.shared.items())
        rest = f", {text.removeprefix('WITH ')}" if text.startswith("WITH ") else f" {text}"
        return f"WITH {begun}{rest}"

    def body(self) -> str:
        body = self.select()
        choice = self.rng.random()
        if choice < 0.1:
            return self.set_operation()
        if choice < 0.2:
            return f"WITH t AS ({body}) SELECT count(*), count(DISTINCT k0), max(k0) FROM t"
        if choice < 0.3:
            return f"WITH t AS ({body}) SELECT * FROM t WHERE k0 = (SELECT max(k0) FROM t)"
        if choice < 0.4:
            # Spark leaves out what nobody reads.
            return f"WITH t AS ({body}) {self.rng.choice(_OVER_UNREAD)}"
        return body

    def set_operation(self) -> str:
        """Write one over two tables, whose columns may differ in their types."""
        kinds = ["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"]
        name = self.rng.choice(["q", "s"])
        one, other = (self.rng.choice(self.tables_with(name)) for _ in range(2))
        right = self.rng.choice(["q", "CAST(q AS BIGINT)", "q + 0.5"]) if name == "q" else "s"
        return f"SELECT {name} FROM {one} {self.rng.choice(kinds)} SELECT {right} FROM {other}"

    def tables_with(self, column: str) -> list[str]:
        return [table for table, columns in self.columns.items() if column in columns]

    def name(self) -> str:
        self.number += 1
        return f"t{self.number}"

    def condition(self, alias: str, table: str) -> str:
        column = self.rng.choice([column for column in self.columns[table] if column in CONDITIONS])
        return self.rng.choice(CONDITIONS[column]).format(c=f"{alias}.{column}")

    def relation(self, table: str) -> tuple[str, Sequence[str]]:
        """Write a table, or a part or an aggregate of one, for FROM; give its columns."""
        alias, choice = self.name(), self.rng.random()
        known = self.columns[table]
        if choice < 0.5:
            return f"{table}", known
        where = self.condition(alias, table)
        if choice < 0.6:
            return f"(SELECT * FROM {table} {alias} WHERE {where})", known
        if choice < 0.68:
            return self.computed(table)
        if choice < 0.73:
            restricted = self.subquery_condition({alias: known}) or where
            return f"(SELECT * FROM {table} {alias} WHERE {restricted})", known
        if choice < 0.76:
            return self.shared_relation(table)
        if choice < 0.79:
            return f"({self.one_row(table, known)})", known
        if choice < 0.86:
            return self.united(table)
        if choice < 0.91:
            # In this order rows that tie are the same rows.
            order = ", ".join(f"{column} {self.calls.direction()}" for column in known)
            first = f"LIMIT {self.rng.choice([0, 1, 7, 40])}"
            cut = self.rng.choice([first, first, f"{first} OFFSET 5", "OFFSET 30"])
            return f"(SELECT * FROM {table} ORDER BY {order} {cut})", known
        keys = [column for column in known if column in KEYS][:2]
        if not keys or "s" not in known:
            return f"(SELECT DISTINCT * FROM {table})", known
        having = self.rng.choice(["", " HAVING count(*) > 2", " HAVING max(q) > 2"])
        having = having if "q" in known else ""
        sql = f"SELECT {', '.join(keys)}, CAST(count(*) AS INT) AS q, max(s) AS s FROM {table}"
        return f"({sql} GROUP BY {', '.join(keys)}{having})", (*keys, "q", "s")

    def computed(self, table: str) -> tuple[str, Sequence[str]]:
        """Write a table of which some columns are computed of themselves."""
        known = self.columns[table]
        values = [
            f"{self.rng.choice(VALUES[column]).format(c=column)} AS {column}"
            if column in VALUES and self.rng.random() < 0.4
            else column
            for column in known
        ]
        where = ""
        if "q" in known and self.rng.random() < 0.25:
            # An error for the rows that the filter leaves out.
            values[known.index("q")] = "CAST((q * 7 + 1) DIV q AS INT) AS q"
            where = " WHERE q <> 0"
        return f"(SELECT {', '.join(values)} FROM {table}{where})", known

    def shared_relation(self, table: str) -> tuple[str, Sequence[str]]:
        """Write the name of a common table expression: one that was used before, or a new one."""
        if self.shared and self.rng.random() < 0.3:
            name = self.rng.choice(list(self.shared))
            return name, self.columns[name]
        sql, columns = self.relation(table)
        name = f"w{len(self.shared)}"
        self.shared[name] = sql if sql.startswith("(") else f"(SELECT * FROM {sql})"
        self.columns[name] = columns
        if table in self.large:
            self.large.add(name)
        return name, columns

    def united(self, table: str) -> tuple[str, Sequence[str]]:
        """Write what two tables have in common, the rows of both beside each other."""
        other = self.rng.choice(list(self.columns))
        shared = [column for column in self.columns[table] if column in self.columns[other]]
        texts = []
        for table_ in (table, other):
            alias = self.name()
            where = f" WHERE {self.condition(alias, table_)}" if self.rng.random() < 0.5 else ""
            marked = [self.marked(column) for column in shared]
            listed = ", ".join(marked if self.rng.random() < 0.4 else shared)
            texts.append(f"SELECT {listed} FROM {table_} {alias}{where}")
        if self.rng.random() < 0.25:
            texts.append(self.one_row(table, shared))
        is_plain = not {"st", "arr"} & set(shared)
        word = " UNION " if is_plain and self.rng.random() < 0.2 else " UNION ALL "
        return f"({word.join(texts)})", shared

    def one_row(self, table: str, columns: Sequence[str]) -> str:
        """Write a row of no table, whose values are subqueries."""
        listed = (f"(SELECT max({column}) FROM {table}) AS {column}" for column in columns)
        return f"SELECT {', '.join(listed)}"

    def marked(self, column: str) -> str:
        """Write a literal for some columns, as what tells inputs of a UNION apart."""
        literals = {"q": ["1", "2"], "s": ["'s1'", "'s2'"]}.get(column)
        return f"{self.rng.choice(literals)} AS {column}" if literals else column

    def from_clause(self) -> tuple[str, dict[str, Sequence[str]]]:
        first = self.rng.choice(["f", "f", "f", "g", "g", "i", "h", "h", "c", "x", "x", *"uuuukk"])
        sql, columns = self.relation(first)
        alias = self.name()
        visible = {alias: columns}
        sql = f"{sql} {alias}"
        for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3, 4])):
            shared = [
                (other, mine, key)
                for other in (*self.columns, *self.shared, *self.shared)
                for mine, known in visible.items()
                for key in KEYS
                if key in known
                and key in self.columns[other]
                # Large tables meet by their fine key alone, or rows would multiply.
                and (key == "id" or other not in self.large)
            ]
            if not shared:
                break
            other, mine, key = self.rng.choice(shared)
            right, right_columns = self.relation(other)
            if key not in right_columns:
                continue
            new = self.name()
            if other in ("p", "r", "e") and self.rng.random() < 0.15:
                sql += f" {self.pairs(mine, visible[mine], right, new, right_columns)}"
                visible[new] = right_columns
                continue
            kinds = ["JOIN"] * 4 + ["LEFT JOIN"] * 2 + ["RIGHT JOIN", "FULL JOIN"]
            kind = self.rng.choice([*kinds, "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
            equals = self.rng.choice(["=", "=", "=", "=", "<=>"])
            on = f"{mine}.{key} {equals} {new}.{key}"
            if self.rng.random() < 0.2 and "q" in right_columns and "q" in visible[mine]:
                compared = ["{0} <= {1}", "{0} * 2 <= {1} + 1", "{0} DIV (abs({1}) + 1) < 2"]
                pair = f"{mine}.q", f"{new}.q"
                on += f" AND {self.rng.choice(compared).format(*pair)}"
            sql += f" {kind} {right} {new} ON {on}"
            if "SEMI" not in kind and "ANTI" not in kind:
                visible[new] = right_columns
        return sql, visible

    def pairs(
        self, mine: str, known: Sequence[str], right: str, new: str, columns: Sequence[str]
    ) -> str:
        """Write a join of all pairs of rows, or of those that a comparison leaves."""
        if "q" not in known or "q" not in columns:
            return f"CROSS JOIN {right} {new}"
        compared = self.rng.choice(["{0} < {1}", "{0} BETWEEN {1} AND {1} + 1", "{0} + {1} = 6"])
        kind = self.rng.choice(["JOIN", "LEFT JOIN"])
        return f"{kind} {right} {new} ON {compared.format(f'{mine}.q', f'{new}.q')}"

    def subquery_condition(self, visible: Mapping[str, Sequence[str]]) -> str | None:
        candidates = [
            (alias, key, table)
            for alias, columns in visible.items()
            for key in KEYS
            if key in columns
            for table in self.tables_with(key)
        ]
        if not candidates:
            return None
        alias, key, table = self.rng.choice(candidates)
        inner = self.name()
        where = self.condition(inner, table)
        value = self.rng.choice(["1", "1", "max(q)", "count(*)"])
        value = value if "q" in self.columns[table] else "1"
        match self.rng.randrange(12):
            case 0:
                return f"{alias}.{key} IN (SELECT {key} FROM {table} {inner} WHERE {where})"
            case 1:
                return f"{alias}.{key} NOT IN (SELECT {key} FROM {table} {inner} WHERE {where})"
            case 2:
                correlated = f"{inner}.{key} = {alias}.{key} AND {where}"
                return f"EXISTS (SELECT {value} FROM {table} {inner} WHERE {correlated})"
            case 3:
                correlated = f"{inner}.{key} = {alias}.{key} AND {where}"
                return f"NOT EXISTS (SELECT {value} FROM {table} {inner} WHERE {correlated})"
            case 4 if "q" in visible[alias] and "q" in self.columns[table]:
                correlated = f"{inner}.{key} = {alias}.{key}"
                return f"{alias}.q >= (SELECT max(q) FROM {table} {inner} WHERE {correlated})"
            case 8 if "q" in visible[alias] and "q" in self.columns[table]:
                word = self.rng.choice(["", "NOT "])
                compared = self.rng.choice(["{0} <> {1}", "{0} + 1 < {1}", "{0} * {1} > 6"])
                correlated = compared.format(f"{inner}.q", f"{alias}.q")
                correlated += f" AND {inner}.{key} = {alias}.{key}"
                return f"{word}EXISTS (SELECT * FROM {table} {inner} WHERE {correlated})"
            case 9:
                grouped = f"{table} {inner} WHERE {where} GROUP BY {key} HAVING count(*) > 1"
                return f"{alias}.{key} IN (SELECT {key} FROM {grouped})"
            case 10 if "s" in visible[alias] and "s" in self.columns[table]:
                pairs = f"SELECT {key}, s FROM {table} {inner} WHERE {where}"
                return f"({alias}.{key}, {alias}.s) IN ({pairs})"
            case 11 if "q" in visible[alias] and "q" in self.columns[table]:
                of_key = f"FROM {table} {inner} WHERE {inner}.{key} = {alias}.{key}"
                share = self.rng.choice(["avg(q)", "0.2 * avg(q)", "count(*) + 1", "sum(q) / 3"])
                return f"{alias}.q > (SELECT {share} {of_key})"
            case 7 if "q" in visible[alias] and "q" in self.columns[table]:
                highest = f"SELECT max(q) AS m FROM {table} {inner} WHERE {where} GROUP BY {key}"
                return f"{alias}.q >= (SELECT min(m) FROM ({highest}))"
            case 6 if "q" in visible[alias]:
                correlated = f"{inner}.{key} = {alias}.{key} AND {where}"
                word = self.rng.choice(["", "NOT "])
                exists = f"{word}EXISTS (SELECT {value} FROM {table} {inner} WHERE {correlated})"
                return f"({alias}.q = 2 OR {exists})"
            case 5 if "q" in visible[alias] and key in WHOLE_KEYS:
                counted = f"{table} {inner} WHERE {where} AND {key} = 7"
                return f"{alias}.q > (SELECT count(*) FROM {counted})"
        return None

    def select(self) -> str:
        source, visible = self.from_clause()
        every = [
            self.readable(f"{alias}.{column}")
            for alias, columns in visible.items()
            for column in columns
        ]
        conditions = []
        if self.rng.random() < 0.5:
            column = self.rng.choice(every)
            asked = CONDITIONS.get(column.rpartition(".")[2])
            if asked:
                conditions.append(self.rng.choice(asked).format(c=column))
        if self.rng.random() < 0.4:
            conditions.append(self.subquery_condition(visible) or "TRUE")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        keys = self.rng.sample(every, min(len(every), self.rng.choice([1, 1, 2, 3])))
        keys = [self.grouped(key) for key in keys]
        named = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
        match self.rng.randrange(10):
            case 0:
                text = f"SELECT {named} FROM {source}{where}"
                if self.rng.random() < 0.6:
                    return text
                order = ", ".join(f"k{at} {self.calls.direction()}" for at in range(len(keys)))
                return f"{text} ORDER BY {order} LIMIT 9{self.rng.choice(['', ' OFFSET 4'])}"
            case 1:
                return f"SELECT DISTINCT {named} FROM {source}{where}"
            case 2:
                windows = f"SELECT {named}, {self.calls.windows(keys, every)} FROM {source}{where}"
                first = windows.removeprefix(f"SELECT {named}, ")
                numbered = first.startswith(("rank(", "dense_rank(", "row_number(", "count("))
                most = self.rng.choice(["", " WHERE w0 <= 2", " WHERE w0 = 1"]) if numbered else ""
                return f"SELECT * FROM ({windows}){most}"
            case 3:
                return f"SELECT count(*) AS k0, {self.calls.aggregates(every)} FROM {source}{where}"
            case 4:
                by = ", ".join(keys)
                calls = self.calls.aggregates(every)
                sets = f"GROUPING SETS (({keys[0]}), ({keys[-1]}), ())"
                sets = self.rng.choice([f"ROLLUP({by})", f"CUBE({by})", sets])
                calls += self.rng.choice(["", f", grouping({keys[0]}) AS a9"])
                if sets.startswith("GROUPING") and len(keys) > 2:
                    sets = f"ROLLUP({by})"
                return f"SELECT {named}, {calls} FROM {source}{where} GROUP BY {sets}"
            # Spark itself loses an order below a limit that it moves past such a subquery.
            case 6:
                by, call = ", ".join(keys), self.calls.aggregate(every)
                window = self.calls.window_over_groups(keys, call)
                listed = f"{named}, {call} AS a0, {window} AS w0"
                return f"SELECT {listed} FROM {source}{where} GROUP BY {by}"
            case 7:
                # The keys of a group are another one's nowhere: no rows tie.
                by, calls = ", ".join(keys), self.calls.aggregates(every)
                order = ", ".join(f"k{at} {self.calls.direction()}" for at in range(len(keys)))
                grouped = f"SELECT {named}, {calls} FROM {source}{where} GROUP BY {by}"
                return f"{grouped} ORDER BY {order} LIMIT {self.rng.choice([1, 5, 40])}"
            case 5 if self.rng.random() < 0.4 and "LIMIT" not in source + str(self.shared):
                return f"SELECT {named}, {self.scalar(visible)} AS a0 FROM {source}{where}"
        if self.rng.random() < 0.1:  # of no rows they are no group
            keys = ["'all'"]
            named = "'all' AS k0"
        by, calls = ", ".join(keys), self.calls.aggregates(every)
        likely = " HAVING count(*) > (SELECT min(q) FROM p)"
        asked = f" HAVING {self.calls.aggregate(every)} IS NOT NULL OR count(*) BETWEEN 2 AND 5"
        having = self.rng.choice(["", "", " HAVING count(*) > 1", likely, asked])
        return f"SELECT {named}, {calls} FROM {source}{where} GROUP BY {by}{having}"

    def scalar(self, visible: Mapping[str, Sequence[str]]) -> str:
        """Write a value out of another table, of the row's own key where it has one."""
        table = self.rng.choice(self.tables_with("q"))
        inner = self.name()
        where = self.condition(inner, table)
        for alias, columns in visible.items():
            shared = [key for key in KEYS if key in columns and key in self.columns[table]]
            if shared:
                key = self.rng.choice(shared)
                where += f" AND {inner}.{key} = {alias}.{key}"
        value = self.rng.choice(["max(q)", "count(*)", "count(DISTINCT q)", "sum(q)"])
        return f"(SELECT {value} FROM {table} {inner} WHERE {where})"

    def readable(self, column: str) -> str:
        """Write a column; of days of which Python has no dates, something that it reads."""
        if not column.endswith(".e"):
            return column
        return self.rng.choice(["unix_date({c})", *GROUPED["e"]]).format(c=column)

    def grouped(self, column: str) -> str:
        name = column.rpartition(".")[2]
        if name not in GROUPED or self.rng.random() < 0.8:
            return column
        return self.rng.choice(GROUPED[name]).format(c=column)
