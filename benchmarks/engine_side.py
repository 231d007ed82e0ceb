"""One engine that is no Spark, over Parquet files: a query per line in, its seconds out."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable


def duckdb_engine(tables: dict[str, str]) -> Callable[[str], int]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    for name, path in tables.items():
        files = path if path.endswith(".parquet") else f"{path}/*.parquet"
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}')")
    return lambda sql: len(connection.execute(sql).fetchall())


def datafusion_engine(tables: dict[str, str]) -> Callable[[str], int]:
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(2))
    for name, path in tables.items():
        context.register_parquet(name, path)
    return lambda sql: sum(batch.num_rows for batch in context.sql(sql).collect())


def main() -> None:
    engines = {"DuckDB": duckdb_engine, "DataFusion": datafusion_engine}
    run = engines[sys.argv[1]](json.loads(sys.argv[2]))
    for line in sys.stdin:
        started = time.perf_counter()
        try:
            rows = run(json.loads(line))
            answer: dict[str, object] = {"seconds": time.perf_counter() - started, "count": rows}
        except Exception as error:  # noqa: BLE001 - each engine has errors of its own
            answer = {"error": str(error).splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
