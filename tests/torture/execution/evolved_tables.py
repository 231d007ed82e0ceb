"""Tables that evolved between their writes, with a column of nearly every type.

Each is written three times: with narrow types, a column of another name and one that is dropped
later; then under another spec, with wider types and columns that have a DEFAULT; then under a third
spec, with a column of another type under the dropped one's name. Some rows are deleted and updated
afterwards, and some tables are compacted, analyzed or laid out anew.

The rows are edges: NaN and -0.0, days before 1582 and beyond 9999, texts that differ behind what
statistics keep of them, numbers that only the wider type holds, nested values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

_ROWS: Final = """
SELECT IF(n % 29 = 0, NULL, n % 300 + IF(n % 9 = 0, {wide} * 3000000000, 0)) AS id,
  CAST(IF(n % 13 = 0, NULL, n % 45 + IF(n % 8 = 0, {wide} * 40000, 0)) AS INT) AS ck,
  IF(n % 17 = 0, NULL, DATE'2019-12-20' + CAST(n % 90 AS INT)) AS d,
  CAST(IF(n % 10 = 4, NULL, n % 7 + IF(n % 6 = 0, {wide} * 1000, 0)) AS INT) AS q,
  CAST(IF(n % 5 = 0, NULL, n * 1.25 - 90 + {wide} * 2000000) AS DECIMAL(12, 2)) AS amt,
  CASE n % 6 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN -0D WHEN 2 THEN 0D WHEN 3 THEN NULL
    WHEN 4 THEN 0.1D ELSE n / 8D END AS v,
  IF(n % 11 = 0, NULL, CONCAT(ELT(n % 4 + 1, 's', 'é', 'S', 's%_'), n % 7)) AS s,
  IF(n % 12 = 0, NULL, CASE n % 5 WHEN 0 THEN X'' WHEN 1 THEN X'00FF' WHEN 2 THEN X'FF'
    ELSE CAST(CONCAT('b', n % 4) AS BINARY) END) AS b,
  CASE n % 9 WHEN 0 THEN NULL WHEN 1 THEN TIMESTAMP_NTZ'1500-03-01 12:30:00.000001'
    WHEN 2 THEN TIMESTAMP_NTZ'9998-12-31 23:59:59.999999'
    WHEN 3 THEN TIMESTAMP_NTZ'1969-12-31 23:59:59.5'
    ELSE TIMESTAMP_NTZ'2019-12-30 22:00:00' + make_dt_interval(CAST(n % 70 AS INT), n % 5) END AS z,
  CASE n % 10 WHEN 0 THEN NULL WHEN 1 THEN TIMESTAMP'2020-03-08 07:00:00Z'
    WHEN 2 THEN TIMESTAMP'2020-03-08 06:59:59.999999Z' WHEN 3 THEN TIMESTAMP'1965-06-01 00:00:00Z'
    ELSE TIMESTAMP'2019-12-30 22:00:00Z' + make_dt_interval(CAST(n % 70 AS INT), n % 5) END AS ts,
  CASE n % 8 WHEN 0 THEN NULL WHEN 1 THEN DATE'0001-01-01' WHEN 2 THEN DATE'1582-10-04'
    WHEN 3 THEN date_from_unix_date(95100000 + CAST(n AS INT)) WHEN 4 THEN DATE'9999-12-31'
    ELSE DATE'2020-02-28' + CAST(n AS INT) END AS e,
  CASE n % 7 WHEN 0 THEN NULL WHEN 1 THEN 0.000000000001BD WHEN 2 THEN -0.5BD
    WHEN 3 THEN CAST('12345678901234567890123.999999999999' AS DECIMAL(38, 12))
    ELSE CAST(n - 20.125 AS DECIMAL(38, 12)) END AS w,
  IF(n % 14 = 0, NULL, rpad(CONCAT('c', n % 3), 5, ' ')) AS ch,
  IF(n % 15 = 0, NULL, CONCAT(REPEAT('ä', CAST(n % 4 AS INT)), n % 3,
    REPEAT(' ', CAST(n % 2 AS INT)))) AS vc,
  IF(n % 16 = 0, NULL, CONCAT(REPEAT('lång ', 60), n % 5)) AS t,
  IF(n % 3 = 0, NULL, n % 2 = 0) AS o,
  CAST(IF(n % 18 = 0, NULL, n % 5 - 2) AS DECIMAL(5, 0)) AS m5,
  IF(n % 7 = 0, NULL, named_struct('a', CAST(IF(n % 4 = 0, NULL, n % 3) AS INT), 'b',
    CONCAT('x', n % 2))) AS st,
  IF(n % 8 = 0, NULL, array(CAST(n % 3 AS INT), CAST(IF(n % 4 = 0, NULL, n % 2) AS INT))) AS arr,
  CAST(IF(n % 6 = 1, NULL, n % 4 + 5) AS INT) AS dv,
  IF(n % 4 = 1, NULL, CONCAT('g', n % 3)) AS g,
  IF(n % 5 = 1, NULL, DATE'2020-01-29' + CAST(n % 4 AS INT)) AS dd,
  CAST(n % 3 AS INT) AS gone
FROM (SELECT id AS n FROM RANGE({first}, {last}))
"""
_TYPES: Final[Mapping[str, str]] = {
    "id": "BIGINT",
    "ck": "INT",
    "d": "DATE",
    "q": "INT",
    "amt": "DECIMAL(12, 2)",
    "v": "DOUBLE",
    "s": "STRING",
    "b": "BINARY",
    "z": "TIMESTAMP_NTZ",
    "ts": "TIMESTAMP",
    "e": "DATE",
    "w": "DECIMAL(38, 12)",
    "ch": "CHAR(5)",
    "vc": "VARCHAR(6)",
    "t": "STRING",
    "o": "BOOLEAN",
    "m5": "DECIMAL(5, 0)",
    "st": "STRUCT<a: INT, b: STRING>",
    "arr": "ARRAY<INT>",
}
_NARROW: Final[Mapping[str, str]] = {
    "id": "INT",
    "ck": "SMALLINT",
    "q": "TINYINT",
    "amt": "DECIMAL(8, 2)",
    "v": "FLOAT",
}
_ADDED: Final[Mapping[str, tuple[str, str]]] = {
    "dv": ("INT", "7"),
    "g": ("STRING", "'dflt'"),
    "dd": ("DATE", "DATE'2020-01-31'"),
}
_GONE: Final = "-1"
_FIRST_NAMES: Final[Mapping[str, str]] = {"s": "s0"}
_FIRST_FIELDS: Final[Sequence[tuple[str, ...]]] = (
    ("bucket(4, id)",),
    ("months(d)",),
    ("s0",),
    ("truncate(5, ck)", "o"),
    ("days(ts)",),
    ("months(z)",),
    ("bucket(3, b)",),
    ("ch",),
    ("truncate(2, t)",),
    ("bucket(3, amt)",),
    ("m5",),
    (),
)
_SECOND_FIELDS: Final[Sequence[tuple[str, ...]]] = (
    ("dv",),
    ("g",),
    ("bucket(2, dd)",),
    ("bucket(4, id)",),
    ("bucket(8, id)",),
    ("truncate(1, s)",),
    ("years(d)",),
    ("v",),
    (),
)
_THIRD_FIELDS: Final[Sequence[tuple[str, ...]]] = (
    ("gone",),
    ("bucket(2, id)",),
    ("months(dd)",),
    ("truncate(100, amt)",),
    ("bucket(2, gone)", "bucket(2, vc)"),
    ("years(e)",),
    (),
)
_PROCEDURES: Final = ("compact", "analyze", "rewrite_partitions")


@dataclass(frozen=True, slots=True)
class EvolvedTable:
    """A table and its history.

    Args:
        count: How many rows are written.
        specs: The partition fields of its three specs.
        deleted: The value of ``q`` whose rows are deleted; None for no DELETE.
        is_updated: Whether rows are updated.
        procedure: What of maintenance runs at the end.
    """

    count: int
    specs: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    deleted: int | None = 3
    is_updated: bool = True
    procedure: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns in the end."""
        return (*_TYPES, *_ADDED, "gone")

    def evolved(self, rng: Random) -> EvolvedTable:
        """Give a table of the same rows with another history."""
        first, second = rng.choice(_FIRST_FIELDS), rng.choice(_SECOND_FIELDS)
        return replace(
            self,
            specs=(first, second, rng.choice(_THIRD_FIELDS)),
            deleted=rng.choice((None, 1, 2, 3)),
            is_updated=rng.random() < 0.6,
            procedure=rng.choice((None, None, *_PROCEDURES)),
        )

    def statements(self, name: str) -> Iterator[str]:
        """List what makes the table."""
        first, second, third = self.specs
        yield from _created(name, first)
        yield f"INSERT INTO {name} SELECT *, 'old' FROM ({self._narrow_rows()})"
        for column in _NARROW:
            yield f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {_TYPES[column]}"
        for column, (kind, default) in _ADDED.items():
            yield f"ALTER TABLE {name} ADD COLUMN {column} {kind} DEFAULT {default}"
        for new, old in _FIRST_NAMES.items():
            yield f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}"
        renamed = [field if field != "s0" else "s" for field in first]
        yield from _respecified(name, renamed, second)
        listed = ", ".join((*_TYPES, *_ADDED))
        kept = self.count * 2 // 3
        rows = f"SELECT {listed} FROM ({_written(self.count // 3, kept, wide=1)})"
        yield f"INSERT INTO {name} ({listed}) {rows}"
        yield f"ALTER TABLE {name} DROP COLUMN gone"
        yield f"ALTER TABLE {name} ADD COLUMN gone INT DEFAULT {_GONE}"
        yield from _respecified(name, second, third)
        listed = ", ".join(self.columns)
        rows = f"SELECT {listed} FROM ({_written(kept, self.count, wide=1)})"
        yield f"INSERT INTO {name} ({listed}) {rows}"
        if self.deleted is not None:
            yield f"DELETE FROM {name} WHERE q = {self.deleted}"
        if self.is_updated:
            yield f"UPDATE {name} SET g = 'u', dv = dv + 1 WHERE id % 11 = 0"
        if self.procedure is not None:
            yield f"CALL lance.system.{self.procedure}('{name.removeprefix('lance.')}')"

    def _narrow_rows(self) -> str:
        columns = ", ".join(
            f"CAST({column} AS {_NARROW[column]}) AS {column}" if column in _NARROW else column
            for column in _TYPES
        )
        return f"SELECT {columns} FROM ({_written(0, self.count // 3, wide=0)})"

    def remaining(self) -> str:
        """Write a SELECT of the rows that it has in the end."""
        widened = [
            f"CAST({column} AS {_TYPES[column]}) AS {column}" if column in _NARROW else column
            for column in _TYPES
        ]
        defaults = [f"{default} AS {column}" for column, (_, default) in _ADDED.items()]
        gone = f"{_GONE} AS gone"
        wider = ", ".join((*_TYPES, *_ADDED, gone))
        kept = self.count * 2 // 3
        parts = (
            f"SELECT {', '.join((*widened, *defaults, gone))} FROM ({self._narrow_rows()})",
            f"SELECT {wider} FROM ({_written(self.count // 3, kept, wide=1)})",
            f"SELECT {', '.join(self.columns)} FROM ({_written(kept, self.count, wide=1)})",
        )
        rows = " UNION ALL ".join(parts)
        if self.deleted is not None:
            rows = f"SELECT * FROM ({rows}) WHERE q IS NULL OR q <> {self.deleted}"
        if self.is_updated:
            updated = {"g": "'u'", "dv": "dv + 1"}
            columns = ", ".join(
                f"IF(id % 11 = 0, {updated[column]}, {column}) AS {column}"
                if column in updated
                else column
                for column in self.columns
            )
            rows = f"SELECT {columns} FROM ({rows})"
        return rows


def _written(first: int, last: int, *, wide: int) -> str:
    return _ROWS.format(first=first, last=last, wide=wide)


def _created(name: str, fields: Sequence[str]) -> Iterator[str]:
    columns = ", ".join(
        f"{_FIRST_NAMES.get(column, column)} {_NARROW.get(column, kind)}"
        for column, kind in _TYPES.items()
    )
    clause = f"PARTITIONED BY ({', '.join(fields)})" if fields else ""
    yield f"CREATE TABLE {name} ({columns}, gone STRING) {clause}"


def _respecified(name: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Drop the fields that the new spec has not, add those that the old one had not."""
    for field in old:
        if field not in new:
            yield f"ALTER TABLE {name} DROP PARTITION FIELD {field}"
    for field in new:
        if field not in old:
            yield f"ALTER TABLE {name} ADD PARTITION FIELD {field}"


EVOLVED: Final[Mapping[str, EvolvedTable]] = {
    "u": EvolvedTable(240, (("months(d)",), ("g",), ("bucket(2, id)",))),
    "k": EvolvedTable(60, (("bucket(4, id)",), ("bucket(4, id)",), ()), deleted=None),
}
