"""Makes TPC-DS in a folder, run by an interpreter whose DuckDB has the generator in it.

``python -m benchmarks.tpcds_generator FOLDER SCALE``: a Parquet file per table, and the queries.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb


def main() -> None:
    folder, scale = Path(sys.argv[1]), float(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    connection.execute(f"CALL dsdgen(sf={scale})")
    for (table,) in connection.execute("SHOW TABLES").fetchall():
        connection.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet)")
    stated = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall()
    queries = {f"q{number}": sql for number, sql in stated}
    (folder / "queries.json").write_text(json.dumps(queries), encoding="utf-8")


if __name__ == "__main__":
    main()
