"""What a lake looks like from outside: directories, and the manifest as the Lance table it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import lance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAVES_SHOWN, FILES_SHOWN, ROWS_SHOWN = 4, 2, 14


def location_of(spark: SparkSession, table: str) -> str:
    """Ask Spark where a table's files are.

    Args:
        spark: A session with Pennon's catalog.
        table: The table's full name.

    Returns:
        The path of the namespace.
    """
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return next(row.data_type for row in rows if row.col_name == "Location")


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
        shown = ", ".join(files[:FILES_SHOWN]) + (", …" if len(files) > FILES_SHOWN else "")
        yield f"{indent}{'└──' if place == len(parts) - 1 else '├──'} {part.name}/  {shown}"


def manifest_rows(path: str) -> tuple[list[str], list[list[object]]]:
    """Read the manifest of a namespace with plain pylance, as any other client would.

    Returns:
        Column names, and the first rows of each kind.
    """
    dataset = lance.dataset(f"{path}/__manifest")
    partition_columns = [
        name for name in dataset.schema.names if name.startswith("partition_field_")
    ]
    names = ["object_id", "object_type", "read_version", *partition_columns]
    rows = dataset.to_table(columns=names).sort_by("object_id").to_pylist()
    cells = [[row[name] for name in names] for row in rows[:ROWS_SHOWN]]
    if len(rows) > ROWS_SHOWN:
        cells.append([f"… {len(rows) - ROWS_SHOWN} more rows", *[""] * (len(names) - 1)])
    return names, cells
