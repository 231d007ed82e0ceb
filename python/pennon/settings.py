"""Every setting of Pennon on the Python side: name, where it is set, type, default, meaning.

Order of precedence, strongest first: the option of a read or a write, the option of the catalog
(``spark.sql.catalog.<name>.<option>``), the property of the table, the environment variable, the
default stated here.

Settings of Spark itself are not listed: Pennon sets those that it needs when its catalog starts,
and leaves each one alone that the user has set.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_AMOUNT: Final = re.compile(r"\s*(\d+)\s*([kmgtp]?)(i?b)?\s*", re.IGNORECASE)
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


class Place(StrEnum):
    """Where a setting is written."""

    CATALOG = "catalog option"
    TABLE = "table property"
    ENVIRONMENT = "environment variable"
    SPARK = "setting of the Spark application"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Args:
        name: As the user writes it; a trailing ``*`` stands for any name behind it.
        place: Where it is written.
        kind: The type of the value, in words.
        default: The value that holds when nothing is set; None where there is none.
        meaning: One sentence.

    Example:
        >>> print(ROOT)
        root (catalog option, path or URL, required): The folder or URL that holds the namespaces.
    """

    name: str
    place: Place
    kind: str
    default: str | None
    meaning: str

    def __str__(self) -> str:
        """Print the setting as one line of documentation."""
        default = "required" if self is ROOT else f"default {self.default or 'none'}"
        return f"{self.name} ({self.place}, {self.kind}, {default}): {self.meaning}"


ROOT = Setting(
    "root", Place.CATALOG, "path or URL", None, "The folder or URL that holds the namespaces."
)
IMPLEMENTATION = Setting(
    "implementation",
    Place.CATALOG,
    "name of a lance_namespace implementation",
    "dir",
    "What lists namespaces and plain tables under the root.",
)
DEFAULT_NAMESPACE = Setting(
    "defaultNamespace",
    Place.CATALOG,
    "name",
    None,
    "Where sessions begin in the catalog: a namespace that is there without being made, and stored"
    " with its first table; without it the root.",
)
STORAGE = Setting(
    "storage.*",
    Place.CATALOG,
    "text",
    None,
    "Handed to Lance as a storage option, without the prefix; never printed.",
)
NAMESPACE_OPTIONS = Setting(
    "namespace.*",
    Place.CATALOG,
    "text",
    None,
    "Handed to the implementation, without the prefix, as a service's `uri`; never printed.",
)
EXECUTION = Setting(
    "execution",
    Place.CATALOG,
    "worker | spark",
    "worker",
    "Who joins and aggregates partition by partition: DataFusion in the workers, or Spark.",
)
ONE_TASK_BYTES = Setting(
    "execution.oneTaskBytes",
    Place.CATALOG,
    "bytes, as 16m",
    "16m",
    "A query that reads at most so much is one task of a worker, without any exchange; 0 for none.",
)
ONE_EXECUTOR_BYTES = Setting(
    "execution.oneExecutorBytes",
    Place.CATALOG,
    "bytes, as 4g",
    "4g",
    "A query that reads at most so much is one task with a thread for each core where the session"
    " has one executor, or few; 0 for none.",
)
REPLICATED_BYTES = Setting(
    "execution.replicatedBytes",
    Place.CATALOG,
    "bytes, as 64m",
    "64m",
    "A join's side that reads at most so much is evaluated by every worker for itself; 0 for none.",
)
TRANSACTION = Setting(
    "transaction",
    Place.TABLE,
    "strong | weak",
    "strong",
    "Whether a write is one atomic commit of the manifest, or one commit per leaf.",
)
ORDER = Setting(
    "write.order",
    Place.TABLE,
    "columns as in ORDER BY",
    None,
    "The order of the rows within each partition that writes keep and merge joins make use of.",
)
ISOLATION = Setting(
    "write.isolation",
    Place.TABLE,
    "serializable | snapshot",
    "serializable",
    "Whether DELETE, UPDATE and MERGE stand only where nothing that they read has changed, or where"
    " the rows that they replace are as they were.",
)
ROW_COMMANDS = ("delete", "update", "merge")
"""What ``<command>`` stands for in the name of a setting."""
ISOLATION_OF_COMMAND = Setting(
    "write.<command>.isolation-level",
    Place.TABLE,
    "serializable | snapshot",
    None,
    "As write.isolation, of delete, update or merge alone; before it.",
)
ROW_CHANGE_MODE = Setting(
    "write.<command>.mode",
    Place.TABLE,
    "merge-on-read | copy-on-write",
    "merge-on-read",
    "Whether delete, update or merge mark rows as gone, or write fragments anew without them.",
)
COMPACTION = Setting(
    "write.compaction.enabled",
    Place.TABLE,
    "true | false",
    "true",
    "Whether small files are put together behind the commits that leave many of them.",
)
KEPT_AGE = Setting(
    "history.expire.max-snapshot-age-ms",
    Place.TABLE,
    "milliseconds",
    None,
    "Where it is set, older versions expire by themselves behind commits; it has to be longer than"
    " the longest statement. Where it is not, each is kept until `expire_snapshots` is called.",
)
KEPT_VERSIONS = Setting(
    "history.expire.min-snapshots-to-keep",
    Place.TABLE,
    "a number",
    "1",
    "How many of the newest versions are kept whatever their age.",
)
WRITER_GRACE = Setting(
    "history.expire.writer-grace-ms",
    Place.TABLE,
    "milliseconds",
    "3600000",
    "How long a commit may stand still: so long the files of `__manifest` stay that belong to"
    " expired versions, which a commit is compared with, and the versions of a plain dataset.",
)
COMPRESSION = Setting(
    "write.compression",
    Place.TABLE,
    "lz4 | zstd | none, with or without a column before it",
    None,
    "How files are compressed beyond Lance's own encodings, as `lz4, comment zstd`; compaction with"
    " the strategy `all` rewrites the files that are there.",
)
STATISTICS_COLUMNS = Setting(
    "write.statistics.columns",
    Place.TABLE,
    "a number, or names of columns",
    "32",
    "Of which columns writes keep the least and the greatest value and the number of NULLs per"
    " partition: so many of the first ones, or those named; 0 for none.",
)
JAR = Setting(
    "PENNON_JAR",
    Place.ENVIRONMENT,
    "path",
    None,
    "The jar to use instead of the one inside the package.",
)
PYTHON = Setting(
    "PYSPARK_PYTHON",
    Place.ENVIRONMENT,
    "path",
    None,
    "The interpreter that runs the workers; `spark.pyspark.python` is stronger.",
)
WORKER_PYTHON = Setting(
    "PENNON_PYTHON",
    Place.ENVIRONMENT,
    "path",
    None,
    "The interpreter that runs the workers, which overrides every setting of Spark.",
)
MEMORY = Setting(
    "PENNON_MEMORY",
    Place.ENVIRONMENT,
    "memory, for example 8g",
    "half of the container's overhead; elsewhere a quarter of what the heaps leave of the machine",
    "The memory that a worker gives to all joins and aggregates that it computes at a time.",
)
STORE_LEAVES = Setting(
    "PENNON_STORE_LEAVES",
    Place.ENVIRONMENT,
    "a number",
    "32",
    "How many partitions of a table on an object store are opened, written and committed at a time;"
    " 1 for one after the other. On a local disk it is fewer, whatever is set.",
)
WORKER_MEMORY = Setting(
    "spark.pennon.worker.memory",
    Place.SPARK,
    "memory, for example 8g",
    "as PENNON_MEMORY, than which it is stronger",
    "The memory that a worker gives to all joins and aggregates that it computes at a time.",
)
WORKER_TIMEOUT = Setting(
    "spark.pennon.worker.timeout",
    Place.SPARK,
    "time, for example 120s",
    "120s",
    "After so long without a sign of life a worker counts as hung and is ended; 0s for never.",
)

SETTINGS: tuple[Setting, ...] = (
    ROOT,
    IMPLEMENTATION,
    DEFAULT_NAMESPACE,
    STORAGE,
    NAMESPACE_OPTIONS,
    EXECUTION,
    ONE_TASK_BYTES,
    ONE_EXECUTOR_BYTES,
    REPLICATED_BYTES,
    TRANSACTION,
    ORDER,
    ISOLATION,
    ISOLATION_OF_COMMAND,
    ROW_CHANGE_MODE,
    COMPACTION,
    KEPT_AGE,
    KEPT_VERSIONS,
    WRITER_GRACE,
    COMPRESSION,
    STATISTICS_COLUMNS,
    JAR,
    PYTHON,
    WORKER_PYTHON,
    MEMORY,
    STORE_LEAVES,
    WORKER_MEMORY,
    WORKER_TIMEOUT,
)


def catalog_options() -> tuple[str, ...]:
    """Name the catalog options that take one plain value besides the root.

    Example:
        >>> "execution" in catalog_options()
        True
    """
    return tuple(
        setting.name
        for setting in SETTINGS
        if setting.place is Place.CATALOG and setting not in (ROOT, STORAGE, NAMESPACE_OPTIONS)
    )


def amount_of_bytes(text: str, *, unit: int = 0) -> int | None:
    """Read an amount of bytes as Spark writes it; None for a text that is none.

    Args:
        text: A number, with or without a unit.
        unit: Power of two that a number without a unit is multiplied with.

    Example:
        >>> amount_of_bytes("16m"), amount_of_bytes("512MiB"), amount_of_bytes("much")
        (16777216, 536870912, None)
    """
    amount = _AMOUNT.fullmatch(text)
    if amount is None:
        return None
    letter = amount[2].lower()
    is_bare = not letter and amount[3] is None
    return int(amount[1]) << (unit if is_bare else _UNITS[letter])


def from_environment(setting: Setting) -> str | None:
    """Read a setting from the environment; an empty value counts as not set.

    Args:
        setting: A setting whose place is the environment.

    Returns:
        The value, or None.
    """
    return os.environ.get(setting.name) or None
