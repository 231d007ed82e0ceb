"""What a benchmark needs beside the project: fetched when it is run, into build/, never before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.side_by_side import ROOT

TPCHGEN = "tpchgen-cli==4.0.0"
# Iceberg's newest release, and the newest Spark that it has a runtime for.
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
ICEBERG_SPARK = "pyspark==4.1.4"
FETCHED = ROOT / "build" / "fetched"


def virtual_environment(name: str, *packages: str) -> Path | None:
    """Make a virtual environment with some packages, once.

    Returns:
        Its folder of programs; None, and why is printed, where the packages cannot be had.
    """
    folder = FETCHED / name
    installed = folder / "installed"
    wanted = "\n".join(packages)
    if installed.exists() and installed.read_text() == wanted:
        return folder / "bin"
    print(f"Fetching {', '.join(packages)} …", flush=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [*pip, "install", "--quiet", *packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            print(f"  They cannot be had: {reason}")
            return None
    installed.write_text(wanted)
    return folder / "bin"


def tpch(
    scale: float,
    folder: Path,
    tables: Sequence[str] = ("orders", "lineitem"),
    parts: int = 4,
) -> Path | None:
    """Make Parquet files of TPC-H's tables, once.

    Args:
        scale: TPC-H's scale factor; 1 is six million lines.
        folder: Gets a folder of files per table, or a file where there is one part.
        tables: Which tables.
        parts: Files per table.

    Returns:
        The folder; None, and why is printed, where the generator cannot be had.
    """
    made = folder / "made"
    if made.exists():
        return folder
    programs = virtual_environment("tpchgen", TPCHGEN)
    if programs is None:
        return None
    print(f"Making {', '.join(tables)}, scale factor {scale:g}, in {folder} …", flush=True)
    subprocess.run(
        [
            *(programs / "tpchgen-cli", "parquet", "--quiet", "--overwrite"),
            *("--scale-factor", f"{scale:g}", "--tables", ",".join(tables)),
            *(("--parts", str(parts)) if parts > 1 else ()),
            *("--row-group-bytes", "128MB", "--output-dir", folder),
        ],
        check=True,
    )
    made.touch()
    return folder
