"""The tables of the random queries: their rows, and how each came to be.

Set 0 is always the same. Every other number has a set of its own: other partitionings, rows that
were written under an older spec, deleted rows, tables without statistics, another session time
zone, ANSI on or off. Columns have NULLs (so do partition values), keys have duplicates and misses,
one table is empty, and in one table columns rise with the partitions, so that statistics prune.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tests.torture.execution.evolved_tables import EVOLVED, EvolvedTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_FACTS: Final = """
SELECT IF(n % 37 = 0, NULL, n % 300) AS id, CAST(IF(n % 11 = 0, NULL, n % 45) AS INT) AS ck,
  CAST(n % 23 AS INT) AS pk, IF(n % 61 = 0, NULL, DATE'2020-01-01' + CAST(n % 150 AS INT)) AS d,
  CAST(n % 7 AS INT) AS q,
  CAST(IF(n % 5 = 0, NULL, n * 1.25 - 400) AS DECIMAL(12, 2)) AS amt,
  CASE n % 5 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN -0D WHEN 2 THEN 0D WHEN 3 THEN NULL ELSE n / 4D
    END AS v, CONCAT('s', n % 13) AS s
FROM (SELECT id AS n FROM RANGE({first}, {last}))
"""


@dataclass(frozen=True, slots=True)
class StarTable:
    """A table and its history.

    Args:
        columns: Their names.
        rows: A SELECT of those rows whose number is in a range.
        count: How many rows there were.
        fields: Its partition fields.
        evolved: What they became before the second half was written; None for one write.
        deleted: The value of ``q`` whose rows were deleted; None for no DELETE.
        has_statistics: Whether the manifest has statistics of its columns.
    """

    columns: tuple[str, ...]
    rows: str
    count: int
    fields: tuple[str, ...] = ()
    evolved: tuple[str, ...] | None = None
    deleted: int | None = None
    has_statistics: bool = True

    def select(self, first: int, last: int) -> str:
        return self.rows.format(first=first, last=last)

    def statements(self, name: str) -> Iterator[str]:
        """List what makes the table."""
        written = self.count if self.evolved is None else self.count // 2
        clause = f"PARTITIONED BY ({', '.join(self.fields)})" if self.fields else ""
        if not self.has_statistics:
            clause += " TBLPROPERTIES ('write.statistics.columns' = '0')"
        yield f"CREATE TABLE {name} {clause} AS {self.select(0, written)}"
        if self.evolved is not None:
            for old in self.fields:
                yield f"ALTER TABLE {name} DROP PARTITION FIELD {old}"
            for new in self.evolved:
                yield f"ALTER TABLE {name} ADD PARTITION FIELD {new}"
            yield f"INSERT INTO {name} {self.select(written, self.count)}"
        if self.deleted is not None:
            yield f"DELETE FROM {name} WHERE q = {self.deleted}"

    def remaining(self) -> str:
        """Write a SELECT of the rows that it has in the end."""
        rows = self.select(0, self.count)
        if self.deleted is None:
            return rows
        return f"SELECT * FROM ({rows}) WHERE q IS NULL OR q <> {self.deleted}"


_FACT_COLUMNS: Final = ("id", "ck", "pk", "d", "q", "amt", "v", "s")
TABLES: Final[Mapping[str, StarTable]] = {
    "f": StarTable(_FACT_COLUMNS, _FACTS, 800, ("bucket(4, id)",)),
    "g": StarTable(_FACT_COLUMNS, _FACTS, 500, ("months(d)",)),
    "i": StarTable(
        ("id", "pk", "q", "amt", "s"),
        """SELECT n % 280 AS id, CAST(n % 9 AS INT) AS pk, CAST(n % 5 AS INT) AS q,
        CAST(n * 0.5 AS DECIMAL(10, 2)) AS amt, CONCAT('s', n % 4) AS s
        FROM (SELECT id AS n FROM RANGE({first}, {last}))""",
        400,
        ("bucket(4, id)",),
    ),
    "h": StarTable(
        ("id", "d", "q", "amt", "ts", "s"),
        """SELECT n % 90 AS id, IF(n % 50 = 49, NULL, DATE'2019-12-20' + CAST(n / 4 AS INT)) AS d,
        CAST(IF(n < 60, NULL, n % 6) AS INT) AS q,
        CAST(IF(n > 400, NULL, n * 3.5) AS DECIMAL(12, 2)) AS amt,
        IF(n % 70 = 0, NULL, TIMESTAMP'2019-12-20 00:30:00' + make_dt_interval(0, n * 5)) AS ts,
        CONCAT('s', lpad(CAST(n / 10 AS INT), 3, '0')) AS s
        FROM (SELECT id AS n FROM RANGE({first}, {last}))""",
        480,
        ("months(d)",),
    ),
    "c": StarTable(
        ("ck", "rk", "s", "q"),
        """SELECT CAST(IF(n % 10 = 0, NULL, n % 40) AS INT) AS ck, CAST(n % 4 AS INT) AS rk,
        CONCAT('n', n) AS s, CAST(n % 6 AS INT) AS q
        FROM (SELECT id AS n FROM RANGE({first}, {last}))""",
        60,
        ("bucket(2, ck)",),
    ),
    "p": StarTable(
        ("pk", "s", "q"),
        """SELECT CAST(n AS INT) AS pk, CONCAT('b', n % 5) AS s, CAST(n % 8 AS INT) AS q
        FROM (SELECT id AS n FROM RANGE({first}, {last}))""",
        20,
        ("bucket(2, pk)",),
    ),
    "r": StarTable(
        ("rk", "s"),
        "SELECT CAST(n AS INT) AS rk, CONCAT('r', n) AS s"
        " FROM (SELECT id AS n FROM RANGE({first}, {last}))",
        3,
    ),
    "t": StarTable(
        ("d", "q", "s"),
        """SELECT DATE'2020-01-01' + CAST(n AS INT) AS d, CAST(n % 9 AS INT) AS q,
        CONCAT('m', n % 12) AS s FROM (SELECT id AS n FROM RANGE({first}, {last}))""",
        160,
    ),
    # Edges: decimals of all 38 digits, far days, groups of one NaN.
    "x": StarTable(
        ("id", "ck", "q", "v", "w", "e", "s"),
        """SELECT n % 60 AS id, CAST(IF(n % 4 = 0, NULL, n % 40) AS INT) AS ck,
        CAST(IF(n % 3 = 0, NULL, n) AS INT) AS q,
        CASE n % 6 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN -0D WHEN 2 THEN NULL
          WHEN 3 THEN DOUBLE('Infinity') ELSE n / 8D END AS v,
        CASE n % 7 WHEN 0 THEN NULL WHEN 1 THEN 0.000000000001BD WHEN 2 THEN -0.5BD
          WHEN 3 THEN CAST('12345678901234567890123.999999999999' AS DECIMAL(38, 12))
          ELSE CAST(n - 20.125 AS DECIMAL(38, 12)) END AS w,
        CASE n % 8 WHEN 0 THEN NULL WHEN 1 THEN DATE'0001-01-01' WHEN 2 THEN DATE'9999-12-31'
          WHEN 3 THEN date_from_unix_date(94100000 + CAST(n AS INT))
          WHEN 4 THEN date_from_unix_date(-94100000 - CAST(n AS INT))
          WHEN 5 THEN DATE'1582-10-15' ELSE DATE'2020-02-28' + CAST(n AS INT) END AS e,
        CONCAT('s', n % 5) AS s FROM (SELECT id AS n FROM RANGE({first}, {last}))""",
        90,
        ("bucket(2, id)",),
    ),
    "e": StarTable(
        ("ck", "q", "s"),
        """SELECT CAST(n AS INT) AS ck, CAST(n AS INT) AS q, CONCAT('e', n) AS s
        FROM (SELECT id AS n FROM RANGE({first}, {last})) WHERE n > 5""",
        3,
    ),
}
LARGE: Final = ("f", "g", "i", "h", "u")
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: table.columns for name, table in TABLES.items()},
    **{name: table.columns for name, table in EVOLVED.items()},
}
_FIELDS: Final[Mapping[str, Sequence[tuple[str, ...]]]] = {
    "f": [
        ("bucket(4, id)",),
        ("bucket(8, id)",),
        ("truncate(100, id)",),
        ("bucket(2, id)", "q"),
        ("multi_bucket(6, ck, pk)",),
        (),
    ],
    "g": [
        ("months(d)",),
        ("years(d)",),
        ("months(d)", "bucket(2, id)"),
        ("bucket(3, ck)",),
        ("multi_bucket(5, id, ck)",),
        ("q",),
    ],
    "i": [("bucket(4, id)",), ("bucket(8, id)",), ("bucket(4, id)", "pk"), ()],
    "h": [("months(d)",), ("months(ts)",), ("bucket(2, id)", "years(d)"), ("q",)],
    "c": [("bucket(2, ck)",), ("truncate(10, ck)",), ("rk",), ()],
    "p": [("bucket(2, pk)",), ("s",), ("expression('lower(col0)', s)",), ()],
    "t": [(), (), ("months(d)",)],
    "x": [("bucket(2, id)",), ("q",), ("ck", "s"), ("expression('col0 % 3', q)",), ()],
}
_ZONES: Final = ("UTC", "America/New_York", "Asia/Kathmandu")


def tables_of(number: int) -> Mapping[str, StarTable | EvolvedTable]:
    """Give the tables of a set."""
    if number == 0:
        return {**TABLES, **EVOLVED}
    rng = random.Random(number)  # noqa: S311 - tables, not secrets
    made: dict[str, StarTable | EvolvedTable] = {}
    for name, table in TABLES.items():
        fields = rng.choice(_FIELDS.get(name, [()]))
        others = [fields_ for fields_ in _FIELDS.get(name, []) if not set(fields_) & set(fields)]
        is_evolved = bool(others) and name in LARGE and rng.random() < 0.4
        made[name] = replace(
            table,
            fields=fields,
            evolved=rng.choice(others) if is_evolved else None,
            deleted=rng.randrange(5) if name in LARGE and rng.random() < 0.3 else None,
            has_statistics=rng.random() < 0.8,
        )
    for name, evolved in EVOLVED.items():
        made[name] = evolved.evolved(rng)
    return made


def settings_of(number: int) -> Mapping[str, str]:
    """Give the settings of the sessions in which a set is made and read."""
    return {
        "spark.sql.session.timeZone": _ZONES[number % len(_ZONES)],
        "spark.sql.ansi.enabled": str(number % 4 != 3).lower(),
    }
