"""A table whose rows are the literals of Spark's examples, and of edge values."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from tests.spark.assert_join import conf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession
    from tests.torture.examples.literals import Example

__all__ = ["COLUMNS", "EDGES", "Row", "columns_of", "example_rows", "make_table"]

Row = dict[str, str]
"""Literals by the names of their columns; a column that is not named is NULL."""

COLUMNS: Final = {
    "string": ("s", "STRING", 3),
    "int": ("i", "INT", 3),
    "bigint": ("b", "BIGINT", 2),
    "smallint": ("si", "SMALLINT", 1),
    "tinyint": ("ti", "TINYINT", 1),
    "double": ("d", "DOUBLE", 2),
    "float": ("f", "FLOAT", 1),
    "decimal": ("dc", "DECIMAL(12,4)", 2),
    "boolean": ("bo", "BOOLEAN", 1),
    "binary": ("bi", "BINARY", 1),
    "date": ("dt", "DATE", 2),
    "timestamp": ("ts", "TIMESTAMP", 2),
    "ntz": ("nt", "TIMESTAMP_NTZ", 2),
}
"""Of a kind of literal: the letters, the type and the number of the columns."""

_DAYS: Final = (
    *("1970-01-01", "1969-12-31", "2024-02-29", "2023-12-31", "2024-12-30", "2021-01-03"),
    *("1582-10-04", "1582-10-15", "1900-02-28", "0001-01-01", "9999-12-31", "2024-03-10"),
)
_CLOCKS: Final = (
    *("2024-03-10 01:30:00", "2024-03-10 03:00:00", "2024-03-09 02:30:00", "2024-11-03 01:30:00"),
    *("2024-11-03 00:59:59.999999", "2024-11-02 01:30:00.5", "1970-01-01 00:00:00"),
    *("1969-12-31 23:59:59.999999", "2023-12-31 23:59:59", "2024-01-01 00:00:00"),
    *("1883-11-18 12:03:57", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    *("2024-02-29 12:00:00.123456", "1900-01-01 10:00:00", "2021-08-31 13:14:15.161718"),
)
EDGES: Final = {
    "string": (
        *("''", "' '", "' a b '", "'\\t7\\n'", "'é'", "'éxé'", "'İ'", "'ß'", "'ΑΣ'", "'한'"),
        *("'\\U0001F600x'", "'e\\u0301'", "'%'", "'a%b_c'", "'a\\\\b'", "'.'", "'a|b'", "'abcabc'"),
        *("'a.b.c'", "'-5'", "' +12 '", "'1e3'", "'NaN'", "'-Infinity'", "'true'", "'no'", "'0'"),
        *("'a'", "'E'", "'EEEE'", "'D'", "'Q'", "'MMM'", "'h:mm a'", "'SSS'", "'yyyyMMdd'"),
        *("'week'", "'qtr'", "'HOUR'", "'ms'", "'Mon'", "'MONDAY'", "'2020'", "'2021-02-30'"),
        *("'0000-01-01'", "'+12345-12-31'", "','", "'a,b,,c,'", "'[ab]+'", "'^(a)(b)?'", "'(?i)B'"),
        *(f"'{day}'" for day in _DAYS),
        *(f"'{clock}'" for clock in _CLOCKS),
    ),
    "int": ("0", "1", "-1", "2", "3", "-7", "12", "31", "100", "1970", "2147483647", "-2147483648"),
    "bigint": (
        *("0L", "1L", "-1L", "-86401L", "253402300800L", "-62135596801L", "9007199254740993L"),
        *("9223372036854775807L", "-9223372036854775808L"),
    ),
    "smallint": ("0S", "1S", "-1S", "32767S", "-32768S"),
    "tinyint": ("0Y", "1Y", "-1Y", "127Y", "-128Y"),
    "double": (
        *("0D", "-0.0D", "0.5D", "-0.5D", "1.5D", "2.5D", "-2.5D", "1.005D", "1e20D", "-1e308D"),
        *("4.9E-324D", "9007199254740993D", "9.2233720368547758E18D", "0.1D", "1e-10D"),
        *("double('NaN')", "double('Infinity')", "double('-Infinity')"),
    ),
    "float": ("0F", "-0.0F", "0.1F", "-2.5F", "1e38F", "float('NaN')", "float('-Infinity')"),
    "decimal": ("0.0", "1.5", "-1.5", "2.5", "-0.0001", "0.00005", "99999999.9999", "-99999999.9"),
    "boolean": ("true", "false"),
    "binary": ("X''", "X'00'", "X'C3A9'", "X'FF80'", "X'616263'"),
    "date": tuple(f"DATE'{day}'" for day in _DAYS),
    "timestamp": tuple(f"TIMESTAMP'{clock} America/New_York'" for clock in _CLOCKS),
    "ntz": tuple(f"TIMESTAMP_NTZ'{clock}'" for clock in _CLOCKS),
    "interval": (
        *("INTERVAL 1 MONTH", "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL 3 DAYS", "INTERVAL 1 WEEK"),
        *("INTERVAL '25' HOUR", "INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-1' SECOND"),
    ),
    "unit": (
        *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "DOW", "HOUR", "MINUTE"),
        *("SECOND", "MILLISECOND", "MICROSECOND"),
    ),
}
"""Literals at the ends of what a kind holds, and next to what most functions mistake."""

_EDGE_ROWS: Final = 160
_AT_ONCE: Final = 100


def columns_of(kind: str) -> list[str]:
    """Name the columns of a kind of literal; there is none of an interval and of a unit."""
    letters, _, count = COLUMNS.get(kind, ("", "", 0))
    return [f"{letters}{number + 1}" for number in range(count)]


def example_rows(examples: Sequence[Example], rng: random.Random) -> list[Row]:
    """Give a row for the literals of each example, then rows of edge values."""
    rows: list[Row] = []
    for example in examples:
        row: Row = {}
        for literal in example.literals:
            written = example.written(literal)
            if literal.kind == "time text":
                day = f"DATE{written[:11]}{written[-1]}"
                moment = f"TIMESTAMP{written}", f"TIMESTAMP_NTZ{written}", day
                for kind, value in zip(("timestamp", "ntz", "date"), moment, strict=True):
                    _put(row, kind, value)
            _put(row, "string" if literal.kind == "time text" else literal.kind, written)
        if row and row not in rows:
            rows.append(row)
    for _ in range(_EDGE_ROWS):
        drawn = {name: rng.choice(EDGES[kind]) for kind in COLUMNS for name in columns_of(kind)}
        rows.append({name: value for name, value in drawn.items() if rng.random() < 0.9})
    return rows


def _put(row: Row, kind: str, written: str) -> None:
    for name in columns_of(kind):
        if name not in row:
            row[name] = written
            return


def make_table(spark: SparkSession, table: str, rows: Sequence[Row]) -> None:
    """Create a table of Pennon that has the rows, numbered in the column ``id``."""
    types = dict(_typed_columns())
    stated = ", ".join(f"{name} {kind}" for name, kind in types.items())
    spark.sql(f"CREATE TABLE {table} (id BIGINT, {stated}) USING lance")
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    with conf(spark, settings):
        frames = []
        for first in range(0, len(rows), _AT_ONCE):
            numbered = enumerate(rows[first : first + _AT_ONCE], first)
            values = ", ".join(
                f"({at}, {', '.join(row.get(name, 'NULL') for name in types)})"
                for at, row in numbered
            )
            cast = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in types.items())
            named = f"t(id, {', '.join(types)})"
            frames.append(spark.sql(f"SELECT id, {cast} FROM VALUES {values} AS {named}"))
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.union(frame)
        whole.coalesce(1).writeTo(table).append()


def _typed_columns() -> Iterator[tuple[str, str]]:
    for kind, (_, of_spark, _) in COLUMNS.items():
        for name in columns_of(kind):
            yield name, of_spark
