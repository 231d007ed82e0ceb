"""Totals of a write: partitions, files and bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["WrittenFiles", "count_files"]


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What the tasks of a write staged, together.

    Args:
        partitions: Partitions with new rows, each once; 0 for a table without partitioning.
        files: Their new files of rows.
        num_bytes: Bytes of these files.
    """

    partitions: int
    files: int
    num_bytes: int


def count_files(staged: Iterable[str]) -> WrittenFiles:
    """Count the files in the reports of a write's tasks.

    Args:
        staged: The reports as text: those of partitions, or fragments of a plain dataset.

    Example:
        >>> fragment = '{"files": [{"path": "a.lance", "file_size_bytes": 700}]}'
        >>> count_files([fragment, fragment])
        WrittenFiles(partitions=0, files=2, num_bytes=1400)
    """
    reports = [json.loads(text) for text in staged]
    of_partitions = [report for report in reports if "object_id" in report]
    fragments = [report for report in reports if "object_id" not in report]
    fragments += [json.loads(text) for report in of_partitions for text in report["fragments"]]
    files = [file for fragment in fragments for file in fragment["files"]]
    return WrittenFiles(
        len({report["object_id"] for report in of_partitions}),
        len(files),
        sum(file["file_size_bytes"] or 0 for file in files),
    )
