"""What a lake looks like from outside: directories, and the manifest as the Lance table it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import lance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
