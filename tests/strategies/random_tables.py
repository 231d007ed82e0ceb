"""Random partitioned tables: their partition fields, their spec histories, and what rows they hold.

A table is a list of specs, each with the share of the rows that was written under it. The oracle
(``least_shuffles``) reads the same objects as the DDL that is made of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.torture.field_meeting import LEVELS, TEXT, Field, common

COLUMNS = (
    *("id", "a", "b", "region", "dep", "s", "ts", "tsn", "d"),
    *("i8", "i16", "i32", "dec", "bin", "flag", "v"),
)
TIME = ("ts", "tsn", "d")
INTEGERS = ("id", "a", "i8", "i16", "i32")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its spec versions, oldest first, and the number of its rows.

    Args:
        number: Its number; tables with an even one and with an odd one have different rows.
        specs: The fields of each spec version; none for a table that never had a field.
        rows: How many rows it has.
        appends: In how many statements the rows of each version are written.
        is_skewed: Whether most rows have the same key.
        is_parquet: Whether it is no table of Pennon at all.
        order: Its write order; empty for none. The first insert into a table that has one and
            several appends is made before it is set.
    """

    number: int
    specs: tuple[tuple[Field, ...], ...]
    rows: int
    appends: int = 1
    is_skewed: bool = False
    is_parquet: bool = False
    order: str = ""

    @property
    def common(self) -> tuple[Field, ...]:
        """The functions by which the rows of all its versions lie together."""
        found = self.specs[0]
        for spec in self.specs[1:]:
            found = common(found, spec)
        return found

    def statements(self, name: str, source: str) -> Iterator[str]:
        """Write the SQL that makes the table of the rows of a view."""
        parts = len(self.specs) * self.appends
        for version, spec in enumerate(self.specs):
            fields = ", ".join(field.sql for field in spec)
            if version == 0:
                by = f" PARTITIONED BY ({fields})" if spec else ""
                yield f"CREATE TABLE {name}{by} AS SELECT * FROM {source} WHERE FALSE"
            else:
                yield from _changes(name, self.specs[version - 1], spec)
            for append in range(self.appends if self.rows else 0):
                at = version * self.appends + append
                if self.order and at == min(1, self.appends - 1):
                    yield f"ALTER TABLE {name} WRITE ORDERED BY {self.order}"
                yield f"INSERT INTO {name} SELECT * FROM {source} WHERE v % {parts} = {at}"


def _changes(name: str, old: Sequence[Field], new: Sequence[Field]) -> Iterator[str]:
    gone = [field for field in old if field not in new]
    added = [field for field in new if field not in old]
    for before, after in zip(gone, added, strict=False):
        yield f"ALTER TABLE {name} REPLACE PARTITION FIELD {before.sql} WITH {after.sql}"
    for field in gone[len(added) :]:
        yield f"ALTER TABLE {name} DROP PARTITION FIELD {field.sql}"
    for field in added[len(gone) :]:
        yield f"ALTER TABLE {name} ADD PARTITION FIELD {field.sql}"


def field_of(rng: random.Random, column: str) -> Field:
    """Choose a partition field of a column."""
    choices = [Field("bucket", (column,), rng.choice([2, 4, 4, 6, 8, 8, 9, 16]))] * 3
    if column != "id":
        choices.append(Field("identity", (column,)))
    if column in TIME:
        units = LEVELS[:3] if column == "d" else LEVELS
        choices += [Field(unit, (column,)) for unit in units]
        choices.append(Field(rng.choice(["month", "day"]), (column,)))
    elif column in (*TEXT, *INTEGERS, "dec"):
        widths = [1, 2, 3] if column in TEXT else [2, 4, 6, 10, 20]
        choices += [Field("truncate", (column,), rng.choice(widths))] * 2
    if column in TEXT:
        choices.append(Field("expression", (column,), "lower(col0)"))
    return rng.choice(choices)


FAMILIES: list[tuple[str, ...]] = [
    *[("id",)] * 5,
    *[("ts",)] * 2,
    ("tsn",),
    ("d",),
    *[("s",)] * 2,
    ("region",),
    ("dep",),
    ("i8",),
    ("i16",),
    ("i32",),
    ("dec",),
    ("bin",),
    ("flag",),
    *[("a", "b")] * 3,
    *[("id", "region")] * 2,
    ("region", "id"),
    ("id", "ts"),
    ("ts", "id"),
    ("s", "d"),
]
"""The columns of partition fields; queries choose the same ones as keys."""


def random_tables(seed: int, count: int) -> list[Table]:
    """Choose tables; the first one is empty, the last two are without partitioning."""
    rng = random.Random(f"tables {seed}")  # noqa: S311 - it has to repeat
    tables: list[Table] = []
    for number in range(count):
        family = FAMILIES[number] if number < 4 else rng.choice(FAMILIES)
        spec = _spec(rng, family)
        specs = [spec]
        if rng.random() < 0.35 and number:
            specs.append(_evolved(rng, spec, family))
        if len(specs) > 1 and rng.random() < 0.3:
            specs.append(_evolved(rng, specs[-1], family))
        rows = 0 if number == 0 else rng.choice([35, 55, 75])
        appends = rng.choice([1, 1, 1, 3]) if rows else 1
        order = _order(rng, family) if rng.random() < 0.4 else ""
        is_skewed = rng.random() < 0.2
        tables.append(Table(number, tuple(specs), rows, appends, is_skewed, order=order))
    tables.append(Table(count, ((),), 45))
    return [*tables, Table(count + 1, ((),), 60, is_parquet=True)]


def _order(rng: random.Random, family: tuple[str, ...]) -> str:
    """Choose a write order, mostly by the columns that queries join and group by."""
    columns = [*family, *rng.sample(["v", "region", "d"], rng.choice([0, 1, 1]))]
    if rng.random() < 0.2:
        rng.shuffle(columns)
    ways = ["", "", "", " DESC", " NULLS LAST"]
    return ", ".join(column + rng.choice(ways) for column in dict.fromkeys(columns))


def _spec(rng: random.Random, family: tuple[str, ...]) -> tuple[Field, ...]:
    if family == ("a", "b") and rng.random() < 0.7:
        return (Field("multi_bucket", family, rng.choice([4, 8, 8, 12])),)
    fields = [field_of(rng, column) for column in family]
    if rng.random() < 0.2:
        other = rng.choice(["region", "flag", "d", "a"])
        if other not in family:
            fields.append(field_of(rng, other))
    rng.shuffle(fields)
    return tuple(fields)


def _evolved(
    rng: random.Random, spec: tuple[Field, ...], family: tuple[str, ...]
) -> tuple[Field, ...]:
    """Change, add or drop one field, as people do: mostly to a finer or coarser one."""
    form = rng.random()
    taken = {column for field in spec for column in field.columns}
    if form < 0.25 and len(spec) > 1:
        return spec[1:]
    free = [column for column in ("region", "id", "d") if column not in taken]
    if form < 0.5 and free:
        return (*spec, field_of(rng, rng.choice(free)))
    at = rng.randrange(len(spec))
    field = spec[at]
    match field.function:
        case "bucket" | "multi_bucket":
            new = Field(field.function, field.columns, int(field.parameter) * rng.choice([2, 3]))
        case "years" | "months" | "days":
            finer = LEVELS[LEVELS.index(field.function) + 1]
            if finer == "hours" and field.columns == ("d",):
                return spec
            new = Field(finer, field.columns)
        case "truncate" if field.columns[0] not in TEXT:
            new = Field("truncate", field.columns, int(field.parameter) * 2)
        case _ if field.columns[0] not in family or len(field.columns) > 1:
            return spec
        case _:
            new = Field("bucket", field.columns, rng.choice([4, 8]))
    return (*spec[:at], new, *spec[at + 1 :])
