"""A partitioned table that evolves, and Parquet copies of the rows that each of its versions has.

Partition fields are added and dropped, columns renamed, promoted, dropped and added, rows appended
and deleted. The copies are changed in Arrow, by nothing of Pennon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from tests.strategies.edge_columns import COLUMNS, FIELDS, TYPES, WIDER, random_rows

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

_ROWS: Final = 45


@dataclass(frozen=True, slots=True)
class Version:
    """What a query of one version of the table should see.

    Args:
        table: The table's name, with the version if it is not the newest.
        view: A view of its rows in Parquet.
        columns: Its columns with their types.
        sources: Columns that partition fields are made of, of whichever spec version.
    """

    table: str
    view: str
    columns: dict[str, str]
    sources: tuple[str, ...]


@dataclass(slots=True)
class EvolvingTable:
    """A table in the making, and its rows."""

    spark: SparkSession
    name: str
    folder: Path
    random: Random
    columns: dict[str, str] = field(default_factory=lambda: dict(COLUMNS))
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    rows: pa.Table | None = None
    ran: list[str] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    names: int = 0

    def make(self, first: list[str] | None = None, *, steps: int = 2, counted: int = 32) -> None:
        """Create the table and change it.

        Args:
            first: The first spec's fields, else some.
            steps: How many times it evolves.
            counted: Of how many columns writes keep statistics.
        """
        chosen: dict[str, tuple[str, ...]] = dict.fromkeys(first or (), ())
        if first is None:
            chosen = self._new_fields()
        listed = ", ".join(
            f"{name} {kind}" for name, kind in {"id": "BIGINT", **self.columns}.items()
        )
        by = f"PARTITIONED BY ({', '.join(chosen)})" if chosen else ""
        self._run(
            f"CREATE TABLE {self.name} ({listed}) {by}"
            f" TBLPROPERTIES ('write.statistics.columns' = '{counted}')"
        )
        self.fields = chosen
        self.append()
        for _ in range(steps):
            self.random.choice((self.remember, self.delete, lambda: None))()
            for change in self.random.sample(
                (self.evolve, self.evolve, self.rename, self.promote, self.drop, self.add), 3
            ):
                change()
            self.append()
        if steps and self.random.random() < 0.5:
            self.delete()
        if self.random.random() < 0.3:
            self._run(f"CALL lance.system.analyze('{self.name.removeprefix('lance.')}')")
        self.remember(is_newest=True)

    def remember(self, *, is_newest: bool = False) -> None:
        """Keep the rows of this version as Parquet."""
        view = f"{self.name.rsplit('.', 1)[1]}_{len(self.versions)}"
        self._view(self.rows, view)
        table = self.name
        if not is_newest:
            [row] = self.spark.sql(f"SELECT max(snapshot_id) FROM {self.name}.history").collect()
            table = f"{self.name} VERSION AS OF {row[0]}"
        sources = tuple(sorted(self.sources & self.columns.keys()))
        self.versions.append(Version(table, view, dict(self.columns), sources))

    def append(self) -> None:
        first = 0 if self.rows is None else 1000 * (self.rows.num_rows // 1000 + 1)
        added = random_rows(self.random, self.columns, first, _ROWS)
        view = f"{self.name.rsplit('.', 1)[1]}_added"
        self._view(added, view)
        names = ", ".join(["id", *self.columns])
        self._run(f"INSERT INTO {self.name} ({names}) SELECT {names} FROM {view}")
        self.rows = added if self.rows is None else pa.concat_tables([self.rows, added])

    def delete(self) -> None:
        if self.rows is not None:
            rest = self.random.randrange(9)
            self._run(f"DELETE FROM {self.name} WHERE id % 9 = {rest}")
            keep = [number % 9 != rest for number in self.rows.column("id").to_pylist()]
            self.rows = self.rows.filter(pa.array(keep))

    def evolve(self) -> None:
        """Drop a field, or add some."""
        if self.fields and self.random.random() < 0.4:
            dropped = self.random.choice(list(self.fields))
            self._run(f"ALTER TABLE {self.name} DROP PARTITION FIELD {dropped}")
            del self.fields[dropped]
            return
        for text, sources in self._new_fields().items():
            if not any(self._is_alike(text, sources, other) for other in self.fields):
                self._run(f"ALTER TABLE {self.name} ADD PARTITION FIELD {text}")
                self.fields[text] = sources

    def rename(self) -> None:
        old, new = self.random.choice(list(self.columns)), self._fresh_name()
        self._run(f"ALTER TABLE {self.name} RENAME COLUMN {old} TO {new}")
        self.columns = {new if name == old else name: kind for name, kind in self.columns.items()}
        self.sources = {new if name == old else name for name in self.sources}
        names = [new if name == old else name for name in self._rows().column_names]
        self.rows = self._rows().rename_columns(names)
        self.fields = {
            text.replace(f"{old})", f"{new})").replace(f"{old},", f"{new},")
            if old in of and text != old
            else (new if text == old else text): tuple(new if name == old else name for name in of)
            for text, of in self.fields.items()
        }

    def promote(self) -> None:
        narrow = [name for name, kind in self.columns.items() if kind in WIDER]
        name = self.random.choice(narrow)
        kind = self.random.choice(WIDER[self.columns[name]])
        self._run(f"ALTER TABLE {self.name} ALTER COLUMN {name} TYPE {kind}")
        self.columns[name] = kind
        at = self._rows().column_names.index(name)
        widened = self._rows().column(name).cast(TYPES[kind])
        self.rows = self._rows().set_column(at, name, widened)

    def drop(self) -> None:
        """Drop a column of which no field of the newest spec is made."""
        live = {name for of in self.fields.values() for name in of}
        old = self.random.choice([name for name in self.columns if name not in live])
        self._run(f"ALTER TABLE {self.name} DROP COLUMN {old}")
        del self.columns[old]
        self.rows = self._rows().drop_columns([old])

    def add(self) -> None:
        name, kind = self._fresh_name(), self.random.choice(("STRING", "INT", "DATE", "DOUBLE"))
        self._run(f"ALTER TABLE {self.name} ADD COLUMN {name} {kind}")
        self.columns[name] = kind
        nothing = pa.nulls(self._rows().num_rows, TYPES[kind])
        self.rows = self._rows().append_column(name, nothing)

    def _new_fields(self) -> dict[str, tuple[str, ...]]:
        if self.random.random() < 0.1:
            pair = tuple(
                self.random.sample(
                    [n for n, k in self.columns.items() if k[:2] in ("IN", "ST", "DA")], 2
                )
            )
            self.sources |= set(pair)
            return {f"multi_bucket(6, {', '.join(pair)})": pair}
        count = self.random.choice((1, 1, 2))
        chosen = self.random.sample(list(self.columns), count)
        self.sources |= set(chosen)
        return {
            self.random.choice(FIELDS[self.columns[name]]).format(name): (name,) for name in chosen
        }

    def _is_alike(self, text: str, sources: tuple[str, ...], other: str) -> bool:
        """Whether a field would be there twice; levels of one column may overlap."""
        return text == other or self.fields[other] == sources

    def _fresh_name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    def _rows(self) -> pa.Table:
        assert self.rows is not None
        return self.rows

    def _view(self, rows: pa.Table | None, view: str) -> None:
        assert rows is not None
        path = self.folder / f"{view}_{len(self.ran)}.parquet"
        pq.write_table(rows.combine_chunks(), path)
        self.spark.read.parquet(str(path)).createOrReplaceTempView(view)

    def _run(self, statement: str) -> None:
        self.ran.append(statement)
        self.spark.sql(statement)
