"""Random conditions in Spark's SQL, on columns of each type, and trees of them.

Nothing says here what a condition means: plain Spark evaluates it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.strategies.edge_columns import VALUES, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

_OPERATORS: Final = ("=", "=", "<>", "<", "<=", ">", ">=", "<=>")
_INTEGERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NUMBERS: Final = (
    *_INTEGERS,
    "DECIMAL(10,2)",
    "DECIMAL(12,2)",
    "DECIMAL(38,10)",
    "FLOAT",
    "DOUBLE",
)
_TIMES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_ODD_NUMBERS: Final = (
    "5L", "5.5", "-0.5", "3000000000", "5D", "'5'", "5Y", "CAST(5 AS FLOAT)", "1e300D", "0.1D",
    "-9223372036854775808L", "128", "-129", "99999999999999999999", "5.00BD", "DOUBLE('NaN')",
    "-0.0D", "TRUE", "NULL",
)  # fmt: skip
_ODD_TIMES: Final = (
    "'2013-01-01'", "'2013-01-01 00:00:00'", "'2013-01-01 05:00:00'", "DATE '2013-01-01'",
    "DATE '2013-03-10'", "DATE '1970-01-01'", "DATE '1582-10-04'", "DATE '2000-02-29'",
    "TIMESTAMP '2013-01-01 00:00:00'", "TIMESTAMP '2013-03-10 02:30:00'",
    "TIMESTAMP '2013-11-03 01:30:00'", "TIMESTAMP '2013-01-01 00:00:00.000001 UTC'",
    "TIMESTAMP '2013-01-01 05:00:00 America/New_York'", "TIMESTAMP_NTZ '2013-01-01 00:00:00'",
    "TIMESTAMP_NTZ '2013-03-10 02:30:00'", "TIMESTAMP_NTZ '0001-01-01 00:00:00'", "'2013'", "NULL",
)  # fmt: skip
_PATTERNS: Final = (
    "'a%'", "'ab%'", "'abc%'", "'a_c%'", "'a_c'", "'%c'", "'%b%'", "'a%c'", "'_%'", "'%'", "''",
    "'\U0001d4b3%'", "'\U0001d4b3_'", "'_y'", "'é%'",
    "'\\\\%%'", "'\\\\_x'", "'a$\\\\\\\\b'", "'a$\\\\\\\\%'", "'it\\'s%'",
    "'!%%' ESCAPE '!'", "'!_x' ESCAPE '!'", "'a!_%' ESCAPE '!'", "'abc!%' ESCAPE '!'", "'A%'",
)  # fmt: skip
_UNITS: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MM", "minute")
_CASTS: Final = {
    "DATE": ("TIMESTAMP", "TIMESTAMP_NTZ"),
    "TIMESTAMP": ("DATE", "TIMESTAMP_NTZ", "DATE"),
    "TIMESTAMP_NTZ": ("DATE", "TIMESTAMP", "DATE"),
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """A source of conditions on some columns.

    Args:
        random: Chooses.
        columns: All columns of the table with their types.
        sources: Those of partition fields; most conditions are on them.
    """

    random: Random
    columns: Mapping[str, str]
    sources: tuple[str, ...]

    def tree(self, depth: int = 4) -> str:
        """Make a condition of at most so many levels of AND, OR and NOT."""
        if depth == 0 or self.random.random() < 0.5:
            return self.atom()
        word = self.random.choice(("AND", "AND", "OR", "OR", "NOT"))
        if word == "NOT":
            return f"NOT ({self.tree(depth - 1)})"
        return f"({self.tree(depth - 1)}) {word} ({self.tree(depth - 1)})"

    def atom(self) -> str:
        """Make one condition, mostly on a column of a partition field."""
        column = self._column()
        kind = self.columns[column]
        makers: list[Callable[[str, str], str]] = [
            self._comparison, self._comparison, self._list, self._null, self._between,
            self._wrapped, self._of_two_columns, self._constant, self._odd_literal,
        ]  # fmt: skip
        own = {
            "STRING": self._text, "BOOLEAN": self._truth, "BINARY": self._bytes,
        }.get(kind) or (self._time if kind in _TIMES else self._number)  # fmt: skip
        return self.random.choice([*makers, own, own, own])(column, kind)

    def subquery(self, view: str) -> str:
        """Make a condition of table ``t`` on the rows of a view, whose values are found first.

        Args:
            view: A view with these columns.
        """
        column = self._column()
        few = f"{view} AS v WHERE v.id % {self.random.choice((5, 11, 40))} = 3"
        less = self.random.choice(("<", ">=", "=", "<=>"))
        return self.random.choice(
            [
                f"t.{column} IN (SELECT v.{column} FROM {few})",
                f"t.{column} NOT IN (SELECT v.{column} FROM {few} AND v.{column} IS NOT NULL)",
                f"EXISTS (SELECT 1 FROM {few} AND v.{column} = t.{column})",
                f"EXISTS (SELECT 1 FROM {few} AND v.{column} <=> t.{column})",
                f"NOT EXISTS (SELECT 1 FROM {few} AND v.{column} = t.{column})",
                f"t.{column} {less} (SELECT max(v.{column}) FROM {few})",
                f"t.{column} {less} (SELECT min(v.{column}) FROM {few} AND v.id = t.id)",
                f"t.{column} IN (SELECT v.{column} FROM {few}) OR {self.atom()}",
            ]
        )

    def _column(self) -> str:
        if self.sources and self.random.random() < 0.75:
            return self.random.choice(self.sources)
        return self.random.choice(list(self.columns))

    def _literal(self, kind: str) -> str:
        return literal(self.random.choice(VALUES[kind]), kind)

    def _operator(self) -> str:
        return self.random.choice(_OPERATORS)

    def _comparison(self, column: str, kind: str) -> str:
        sides = [column, self._literal(kind)]
        if self.random.random() < 0.2:
            sides.reverse()
        return f" {self._operator()} ".join(sides)

    def _list(self, column: str, kind: str) -> str:
        few = self.random.choice((1, 1, 2, 3, 12))
        items = [self._literal(kind) for _ in range(few)]
        if self.random.random() < 0.15:
            items.append("NULL")
        if kind in _INTEGERS[1:] and self.random.random() < 0.1:
            items += [str(n) for n in range(30, 430)]
        word = self.random.choice(("IN", "IN", "NOT IN"))
        return f"{column} {word} ({', '.join(items)})"

    def _null(self, column: str, kind: str) -> str:
        return self.random.choice(
            [
                f"{column} IS NULL",
                f"{column} IS NOT NULL",
                f"{column} <=> NULL",
                f"NOT ({column} <=> {self._literal(kind)})",
                f"isnull({column}) = isnotnull({self._column()})",
                f"{column} = NULL",
            ]
        )

    def _between(self, column: str, kind: str) -> str:
        if kind in _INTEGERS[1:] and self.random.random() < 0.4:
            low = self.random.choice((-12, -1, 0, 3, 9))
            return f"{column} BETWEEN {low} AND {low + self.random.choice((0, 4, 25, 600))}"
        if kind == "BOOLEAN":
            return f"{column} >= {self._literal(kind)}"
        word = self.random.choice(("BETWEEN", "BETWEEN", "NOT BETWEEN"))
        return f"{column} {word} {self._literal(kind)} AND {self._literal(kind)}"

    def _wrapped(self, column: str, kind: str) -> str:
        """The column within a function that takes any type."""
        one, two = self._literal(kind), self._literal(kind)
        return self.random.choice(
            [
                f"coalesce({column}, {one}) {self._operator()} {two}",
                f"nullif({column}, {one}) IS NULL",
                f"if({column} IS NULL, {one}, {column}) {self._operator()} {two}",
                f"CASE WHEN {column} = {one} THEN 1 WHEN {column} = {two} THEN 2 END = 2",
                f"CASE {column} WHEN {one} THEN 'x' ELSE 'y' END = 'y'",
                f"({column} = {one}) = ({self.atom_on(self._column())})",
                f"({column} = {one}) <=> NULL",
                f"hash({column}) % 3 = 1",
                f"({column}, {self._column()} IS NULL) = ({one}, FALSE)",
                f"({column}, id) IN (({one}, 5L), ({two}, 6L))",
                f"greatest({column}, {one}) = {one}",
                f"decode({column}, {one}, 1, {two}, 2, 3) = 2",
                f"array_contains(array({one}, {two}), {column})",
                f"nvl2({column}, 1, 2) = {self.random.choice((1, 2))}",
            ]
        )

    def atom_on(self, column: str) -> str:
        return self._comparison(column, self.columns[column])

    def _of_two_columns(self, column: str, kind: str) -> str:
        others = [name for name, one in self.columns.items() if one == kind and name != column]
        if kind in _NUMBERS:
            others = [name for name, one in self.columns.items() if one in _NUMBERS]
        if kind in _TIMES:
            others = [name for name, one in self.columns.items() if one in _TIMES]
        other = self.random.choice(others or [column])
        return f"{column} {self._operator()} {other}"

    def _constant(self, column: str, kind: str) -> str:
        one = self._literal(kind)
        return self.random.choice(
            [
                "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)", f"{one} = {one}", f"{column} = {column}",
                f"{column} <=> {column}", f"{column} <> {column}", "1 = 2", "NULL AND TRUE",
            ]
        )  # fmt: skip

    def _odd_literal(self, column: str, kind: str) -> str:
        """A literal of another type, on either side."""
        literals: tuple[str, ...]
        if kind in _NUMBERS:
            literals = _ODD_NUMBERS
        elif kind in _TIMES:
            literals = _ODD_TIMES
        elif kind == "STRING":
            literals = ("5", "5L", "DATE '2013-01-01'", "X'6162'", "TRUE", "5.0D", "NULL")
        elif kind == "BOOLEAN":
            literals = ("1", "0", "'true'", "'f'", "NULL", "5")
        else:
            literals = ("'ab'", "''", "CAST('ab' AS BINARY)", "NULL")
        sides = [column, self.random.choice(literals)]
        if self.random.random() < 0.2:
            sides.reverse()
        if self.random.random() < 0.25:
            odd = sides[1] if sides[0] == column else sides[0]
            return f"{column} IN ({odd}, {self._literal(kind)})"
        return f" {self._operator()} ".join(sides)

    def _truth(self, column: str, kind: str) -> str:
        del kind
        return self.random.choice(
            [
                column, f"NOT {column}", f"{column} IS TRUE", f"{column} IS NOT TRUE",
                f"{column} IS FALSE", f"{column} IS UNKNOWN", f"{column} = (id % 2 = 0)",
                f"CAST({column} AS INT) = 1", f"{column} = ({self.atom_on(self._column())})",
                f"CAST({column} AS STRING) = 'true'", f"{column} <> TRUE",
            ]
        )  # fmt: skip

    def _bytes(self, column: str, kind: str) -> str:
        one = self._literal(kind)
        return self.random.choice(
            [
                f"startswith({column}, {one})", f"contains({column}, {one})",
                f"endswith({column}, {one})", f"length({column}) {self._operator()} 2",
                f"hex({column}) = 'FF'", f"CAST({column} AS STRING) = 'ab'",
                f"substring({column}, 1, 1) = X'00'", f"lance.system.bucket(4, {column}) = 1",
            ]
        )  # fmt: skip

    def _text(self, column: str, kind: str) -> str:
        one, operator = self._literal(kind), self._operator()
        pattern = self.random.choice(_PATTERNS)
        plain = self.random.choice([text for text in _PATTERNS if "ESCAPE" not in text])
        return self.random.choice(
            [
                f"{column} LIKE {pattern}", f"{column} LIKE {pattern}",
                f"{column} NOT LIKE {pattern}", f"{column} NOT LIKE {pattern}",
                f"{column} ILIKE {plain}", f"{column} LIKE ANY ({plain}, 'b%')",
                f"{column} NOT LIKE ALL ({plain}, 'b%')", f"{column} LIKE ALL ({plain}, '%c')",
                f"startswith({column}, {one})", f"endswith({column}, {one})",
                f"NOT startswith({column}, {one})", f"contains({column}, {one})",
                f"substring({column}, 1, {self.random.choice((0, 1, 2, 3))}) {operator} {one}",
                f"left({column}, {self.random.choice((1, 2))}) {operator} {one}",
                f"lower({column}) {operator} {one}", f"upper({column}) {operator} {one}",
                f"length({column}) {operator} {self.random.choice((0, 1, 2, 3))}",
                f"trim({column}) {operator} {one}", f"concat({column}, 'x') {operator} 'abx'",
                f"{column} || {one} = 'abab'",
                f"{column} RLIKE '^a.c'",
                f"soundex({column}) = 'A100'",
                f"reverse({column}) = 'ba'", f"{column} COLLATE UTF8_LCASE = 'ab'",
                f"replace({column}, 'a', 'b') {operator} 'bb'", f"instr({column}, 'b') > 1",
                f"TRY_CAST({column} AS INT) {operator} 5", f"ascii({column}) = 97",
                f"TRY_CAST({column} AS DATE) >= DATE '2013-01-01'", f"initcap({column}) = 'Abc'",
                f"lance.system.truncate(1, {column}) {operator} 'a'",
                f"rpad({column}, 3, '_') = 'ab_'",
                f"lance.system.bucket(4, {column}) IN (1, 3)", f"substring({column}, 2) = 'b'",
                f"split({column}, 'b')[0] = 'a'", f"translate({column}, 'ab', 'ba') = 'ba'",
            ]
        )  # fmt: skip

    def _number(self, column: str, kind: str) -> str:
        operator, small = self._operator(), self.random.choice((-7, -1, 0, 1, 3, 5, 10))
        of_any = [
            f"{column} + {small} {operator} 5", f"{column} - {small} {operator} {small}",
            f"{column} * 2 {operator} 10", f"-{column} {operator} {small}",
            f"abs({column}) {operator} 7", f"{column} / 2 {operator} 2.5",
            f"{column} % 3 {operator} 1", f"pmod({column}, 3) {operator} {abs(small)}",
            f"CAST({column} AS STRING) {operator} '5'", f"CAST({column} AS STRING) LIKE '1%'",
            f"CAST({column} AS DOUBLE) {operator} {small}",
            f"CAST({column} AS BIGINT) {operator} 5",
            f"try_add({column}, {small}) {operator} 5", f"round({column}) {operator} {small}",
            f"TRY_CAST({column} AS TINYINT) {operator} {small}", f"sign({column}) {operator} 1",
            f"CAST({column} AS BOOLEAN)", f"floor({column}) {operator} {small}",
            f"ceil({column}) {operator} {small}", f"{small} - {column} {operator} {small}",
        ]  # fmt: skip
        if kind in ("FLOAT", "DOUBLE"):
            of_any += [
                f"isnan({column})", f"NOT isnan({column})", f"{column} {operator} 'NaN'",
                f"nanvl({column}, 5) {operator} 5", f"{column} {operator} -0.0D",
                f"{column} {operator} CAST('0.1' AS FLOAT)", f"{column} {operator} 0.1D",
            ]  # fmt: skip
        else:
            of_any += [
                f"lance.system.bucket(4, {column}) {operator} 1",
                f"lance.system.truncate(10, {column}) {operator} 10",
            ]
        if kind in _INTEGERS:
            of_any += [
                f"{column} div 4 {operator} {small}", f"{column} & 3 {operator} 1",
                f"CAST({column} AS DECIMAL(20,2)) {operator} 5.00",
                f"{column} > 4 AND {column} < 12",
                f"bin({column}) = '101'", f"shiftright({column}, 1) {operator} 2",
            ]  # fmt: skip
        return self.random.choice(of_any)

    def _time(self, column: str, kind: str) -> str:
        operator, odd = self._operator(), self.random.choice(_ODD_TIMES[:-2])
        unit, days = self.random.choice(_UNITS), self.random.choice((0, 59, -1))
        year, month = (
            self.random.choice((1, 1582, 1969, 1970, 2012, 2013)),
            self.random.choice((1, 2, 12)),
        )
        cast = f"CAST({column} AS {self.random.choice(_CASTS[kind])})"
        return self.random.choice(
            [
                f"{cast} {operator} {odd}", f"{cast} {operator} {odd}", f"{cast} {operator} {odd}",
                f"{cast} IN ({odd}, {self.random.choice(_ODD_TIMES[:-2])})",
                f"year({column}) {operator} {year}", f"year({column}) IN ({year}, 2024)",
                f"month({column}) {operator} {month}", f"quarter({column}) {operator} 1",
                f"dayofmonth({column}) {operator} {self.random.choice((1, 29, 31))}",
                f"hour({column}) {operator} {self.random.choice((0, 1, 2, 5, 23))}",
                f"date_trunc('{unit}', {column}) {operator} {odd}",
                f"date_trunc('{unit}', {column}) {operator} {odd}",
                f"trunc({column}, '{unit}') {operator} DATE '2013-01-01'",
                f"CAST({column} AS STRING) LIKE '{year:04}-%'",
                f"CAST({column} AS STRING) {operator} '2013-01-01'",
                f"date_format({column}, 'yyyy-MM') {operator} '2013-01'",
                f"{column} + INTERVAL '1' DAY {operator} {odd}",
                f"{column} - INTERVAL '1' MONTH {operator} {odd}",
                f"date_add({column}, 1) {operator} DATE '2013-01-01'",
                f"datediff({column}, DATE '2013-01-01') {operator} {days}",
                f"last_day({column}) = DATE '2012-12-31'", f"dayofweek({column}) {operator} 3",
                f"add_months({column}, 1) {operator} DATE '2013-02-01'",
                f"year({column}) = {year} AND month({column}) = {month}",
                f"(year({column}), month({column})) IN (({year}, {month}), (2013, 3))",
                f"year({column}) * 100 + month({column}) {operator} {year}{month:02}",
                f"lance.system.days({column}) {operator} 15706",
                f"extract(YEAR FROM {column}) = {year}",
                f"weekofyear({column}) {operator} 1", f"dayofyear({column}) {operator} 60",
                f"to_date({column}) {operator} DATE '2013-01-01'",
                f"unix_date(CAST({column} AS DATE)) {operator} 15706",
                f"months_between({column}, DATE '2013-01-01') {operator} 0",
                f"{column} BETWEEN {odd} AND {self.random.choice(_ODD_TIMES[:-2])}",
            ]
        )  # fmt: skip
