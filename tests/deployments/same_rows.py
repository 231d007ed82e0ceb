"""Representative queries and writes, held against plain Parquet tables in the same session."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = """
SELECT id, concat('c', id % 3) AS country,
    TIMESTAMP '2024-03-09 20:00:00 UTC' + make_dt_interval(0, CAST(id % 40 AS INT)) AS ts,
    DATE '2024-03-09' + CAST(id % 5 AS INT) AS day,
    CAST(id * 1.25 AS DECIMAL(12, 2)) AS amount,
    IF(id % 7 = 0, NULL, id / 8D) AS x, concat('n', id % 11) AS name
FROM range(300)
"""
DIMENSIONS = "SELECT concat('n', id) AS name, id * 10 AS weight FROM range(9)"
PARTITIONINGS = {"facts": "country, days(ts)", "events": "bucket(4, id)", "names": ""}
TABLES = {"facts": ROWS, "events": f"SELECT id, amount * 2 AS amount FROM ({ROWS})"}
TABLES["names"] = DIMENSIONS

QUERIES = {
    "partitions by a day of the session": "SELECT * FROM facts WHERE day = DATE '2024-03-10'",
    "partitions by a time of the session": (
        "SELECT id, ts FROM facts WHERE ts >= TIMESTAMP '2024-03-10 01:30:00' AND country <> 'c1'"
    ),
    "a column cast to a day": "SELECT id FROM facts WHERE CAST(ts AS DATE) = DATE '2024-03-10'",
    "groups by parts of a time": (
        "SELECT country, hour(ts), count(*), sum(amount), min(ts) FROM facts GROUP BY 1, 2"
    ),
    "groups by a text of a time": (
        "SELECT date_format(ts, 'yyyy-MM-dd HH'), sum(x) FROM facts GROUP BY 1"
    ),
    "arithmetic": "SELECT country, sum(id % 7), avg(amount), max(amount / 3) FROM facts GROUP BY 1",
    "a join by the key": (
        "SELECT f.id, f.amount + e.amount FROM facts f JOIN events e ON f.id = e.id WHERE f.x > 9"
    ),
    "a join with a small table": (
        "SELECT country, sum(weight) FROM facts JOIN names USING (name) GROUP BY country"
    ),
    "an outer join": (
        "SELECT f.id, n.weight FROM facts f LEFT JOIN names n ON f.name = n.name AND f.id > 200"
    ),
    "a window": (
        "SELECT id, row_number() OVER (PARTITION BY country ORDER BY amount, id) FROM facts"
    ),
    "rows that are not there": (
        "SELECT * FROM events WHERE id NOT IN (SELECT id FROM facts WHERE x > 5)"
    ),
    "a scalar subquery": (
        "SELECT id FROM facts f WHERE amount > (SELECT avg(amount) / 3 FROM events)"
    ),
    "the largest": "SELECT id, amount FROM events ORDER BY amount DESC, id LIMIT 7",
    "distinct": "SELECT count(DISTINCT name), count(DISTINCT country) FROM facts",
    "a union": "SELECT id FROM facts WHERE id < 9 UNION ALL SELECT id FROM events WHERE id > 290",
    "a rollup": "SELECT country, day, sum(amount) FROM facts GROUP BY ROLLUP (country, day)",
}
# Each statement, and what a table of Parquet holds after it.
WRITES = {
    "INSERT INTO {t} SELECT id + 1000, country, ts, day, amount, x, name FROM src WHERE id < 50": (
        "SELECT * FROM now UNION ALL"
        " SELECT id + 1000, country, ts, day, amount, x, name FROM src WHERE id < 50"
    ),
    "INSERT INTO {t} VALUES"
    " (2000, 'c9', TIMESTAMP '2024-03-10 02:30:00', DATE '2024-03-10', 1, 2, 'n')": (
        "SELECT * FROM now UNION ALL SELECT 2000, 'c9', TIMESTAMP '2024-03-10 02:30:00',"
        " DATE '2024-03-10', CAST(1 AS DECIMAL(12, 2)), 2D, 'n'"
    ),
    "UPDATE {t} SET amount = amount + 1, country = 'c7' WHERE id % 10 = 3": (
        "SELECT id, IF(id % 10 = 3, 'c7', country), ts, day,"
        " CAST(IF(id % 10 = 3, amount + 1, amount) AS DECIMAL(12, 2)), x, name FROM now"
    ),
    "DELETE FROM {t} WHERE country = 'c1'": "SELECT * FROM now WHERE country <> 'c1'",
    "DELETE FROM {t} WHERE ts < TIMESTAMP '2024-03-10 00:00:00' AND x > 3": (
        "SELECT * FROM now"
        " WHERE NOT coalesce(ts < TIMESTAMP '2024-03-10 00:00:00' AND x > 3, false)"
    ),
    "MERGE INTO {t} t USING (SELECT id, amount FROM src WHERE id IN (2, 4, 6)) s ON t.id = s.id"
    " WHEN MATCHED AND t.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET amount = s.amount * 3": (
        "SELECT id, country, ts, day,"
        " CAST(IF(id IN (4, 6), amount * 3, amount) AS DECIMAL(12, 2)), x, name"
        " FROM now WHERE id <> 2"
    ),
}
_numbers = itertools.count(1)


@contextlib.contextmanager
def settings(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session for a while."""
    before = {key: session.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, value)


def make_tables(session: SparkSession, folder: Path, namespace: str) -> None:
    """Make each table in Parquet, and as one of Pennon from that."""
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    for name, query in TABLES.items():
        session.sql(query).write.mode("overwrite").parquet(f"{folder}/{name}")
        partitioned = f"PARTITIONED BY ({PARTITIONINGS[name]})" if PARTITIONINGS[name] else ""
        source = f"SELECT * FROM parquet.`{folder}/{name}`"
        session.sql(f"CREATE OR REPLACE TABLE {namespace}.{name} {partitioned} AS {source}")


def use(session: SparkSession, folder: Path, namespace: str | None) -> None:
    """Let the tables' names mean Pennon's, or those of Parquet: through views alone."""
    for name in TABLES:
        place = f"{namespace}.{name}" if namespace else f"parquet.`{folder}/{name}`"
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM {place}")


def different_queries(session: SparkSession, folder: Path, namespace: str) -> list[str]:
    """Run each query over both; tells the ones whose rows differ."""
    rows = []
    for place in (namespace, None):
        use(session, folder, place)
        rows.append({name: _rows(session, query) for name, query in QUERIES.items()})
    assert all(rows[1].values()), [name for name, found in rows[1].items() if not found]
    return [
        f"{name}: {len(rows[0][name])} rows, {len(rows[1][name])} in Parquet:"
        f" {sorted(set(rows[0][name]) ^ set(rows[1][name]))[:3]}"
        for name in QUERIES
        if rows[0][name] != rows[1][name]
    ]


def different_writes(session: SparkSession, folder: Path, namespace: str) -> list[str]:
    """Run each write, and compare the table with what it should hold."""
    table = f"{namespace}.written{next(_numbers)}"
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW src AS SELECT * FROM parquet.`{folder}/facts`")
    session.sql(f"CREATE TABLE {table} PARTITIONED BY (country, days(ts)) AS SELECT * FROM src")
    now = session.table("src").localCheckpoint()
    columns = now.columns
    found = []
    for statement, after in WRITES.items():
        now.createOrReplaceTempView("now")
        session.sql(statement.format(t=table))
        now = session.sql(after).toDF(*columns).localCheckpoint()
        expected = sorted(map(repr, now.collect()))
        stored = sorted(map(repr, session.table(table).collect()))
        if stored != expected:
            found.append(f"{statement}: {sorted(set(stored) ^ set(expected))[:3]}")
            break
    session.sql(f"DROP TABLE {table}")
    return found


def different_beside_each_other(
    session: SparkSession, folder: Path, namespace: str, count: int = 8
) -> list[str]:
    """Ask the queries in several sessions at once, each with names of its own."""
    sessions = [session.newSession() for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        found = pool.map(lambda one: different_queries(one, folder, namespace), sessions)
        return [difference for differences in found for difference in differences]


def _rows(session: SparkSession, query: str) -> list[str]:
    return sorted(map(repr, session.sql(query).collect()))
