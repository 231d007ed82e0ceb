"""The queries of the benchmarks: files of statements, each behind a line that names it."""

from __future__ import annotations

from pathlib import Path

QUERIES = Path(__file__).parent / "queries"


def named_queries(suite: str) -> dict[str, str]:
    """Read the queries of ``tpch``, ``in_spark`` or ``star`` in order: name → SQL."""
    return read_queries(QUERIES / f"{suite}.sql")


def read_queries(path: Path) -> dict[str, str]:
    """Read a file of queries in order: name → SQL."""
    found: dict[str, str] = {}
    for part in path.read_text(encoding="utf-8").split(";"):
        lines = part.strip().splitlines()
        comments = [line for line in lines if line.startswith("--")]
        if comments:
            name = comments[-1].removeprefix("--").strip()
            found[name] = "\n".join(line for line in lines if not line.startswith("--"))
    return found


def star_tables(rows: int) -> list[tuple[str, str, str]]:
    """List the star's tables: name, PARTITIONED BY, the SELECT of the rows."""
    tables = []
    for title, select in named_queries("star_tables").items():
        name, _, partitioned_by = title.partition(":")
        tables.append((name, partitioned_by.strip(), select.replace("{rows}", str(rows))))
    return tables
