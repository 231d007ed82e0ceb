"""TPC-DS: tables and queries as DuckDB makes them, and how the tables are partitioned."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import sqlglot
from benchmarks import fetched
from benchmarks.side_by_side import ROOT

# The wheels of later ones have no generator in them.
DUCKDB = "duckdb==1.0.0"
# Facts by their item, which most of their joins compare, as sales and returns do.
PARTITIONS = {
    "store_sales": "bucket(8, ss_item_sk)",
    "store_returns": "bucket(8, sr_item_sk)",
    "catalog_sales": "bucket(8, cs_item_sk)",
    "catalog_returns": "bucket(8, cr_item_sk)",
    "web_sales": "bucket(8, ws_item_sk)",
    "web_returns": "bucket(8, wr_item_sk)",
    "inventory": "bucket(8, inv_item_sk)",
    "customer": "bucket(4, c_customer_sk)",
}


def sources(scale: float, folder: Path) -> dict[str, Path]:
    """Make the tables' Parquet files, and the queries beside them, once: table → file."""
    made = folder / "made"
    if not made.exists():
        programs = fetched.virtual_environment("tpcds", DUCKDB)
        if programs is None:
            sys.exit("The data of TPC-DS cannot be made.")
        print(f"Making TPC-DS, scale factor {scale:g}, in {folder} …", flush=True)
        generator = [str(programs / "python"), "-m", "benchmarks.tpcds_generator"]
        subprocess.run([*generator, str(folder), f"{scale:g}"], cwd=ROOT, check=True)
        made.touch()
    return {file.stem: file for file in sorted(folder.glob("*.parquet"))}


def queries(folder: Path) -> dict[str, str]:
    """Read the queries beside the tables as Spark's SQL: name → SQL."""
    stated: dict[str, str] = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    return {
        name: sqlglot.transpile(sql.strip().rstrip(";"), read="duckdb", write="spark")[0]
        for name, sql in stated.items()
    }
