"""Write options of other formats, as they are spelt or nearly so: they would be ignored."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pennon.catalog.configured_catalog import misspelling_of
from pennon.errors import WriteOptionNotSupported

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["WriteMode", "check_options"]


class WriteMode(StrEnum):
    """What a write does with the rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    """Rows that satisfy the write's condition go; without one, all."""
    OVERWRITE_PARTITIONS = "overwrite_partitions"
    """The partitions go into which the write has rows."""
    DELETE = "delete"
    """Single rows go."""
    UPDATE = "update"
    """Single rows go, and others come for them."""
    MERGE = "merge"
    """Single rows go, and others come."""

    @property
    def is_row_level(self) -> bool:
        """Whether single rows go, named by their ids."""
        return self in (WriteMode.DELETE, WriteMode.UPDATE, WriteMode.MERGE)

    def described(self, table: str, predicates: Sequence[str]) -> str:
        """What EXPLAIN says of a write.

        Example:
            >>> WriteMode.OVERWRITE.described("lance.shop.orders", ["id = 1"])
            'overwrite lance.shop.orders where id = 1'
        """
        match self:
            case WriteMode.APPEND:
                return f"append to {table}"
            case WriteMode.OVERWRITE:
                return f"overwrite {table} where {' AND '.join(predicates)}"
            case WriteMode.OVERWRITE_PARTITIONS:
                return f"overwrite partitions of {table}"
        return f"{self} rows of {table}"


_OVERWRITE: Final = (
    "Call df.writeTo(…).overwrite(condition) or .overwritePartitions(), or set"
    " spark.sql.sources.partitionOverwriteMode for INSERT OVERWRITE"
)
_ONCE: Final = "Write by writeStream.toTable(…), whose batches are written once"
_ISOLATION: Final = "Set the table property write.<statement>.isolation-level"
_SUMMARY: Final = (
    "A commit has no words of its own: name its version by ALTER TABLE … CREATE TAG, or keep them"
    " in a column"
)
_INSTEAD: Final[Mapping[str, str]] = {
    "branch": "The format has no branches: write to a copy made by CREATE TABLE … AS SELECT",
    "tag": "Tags name versions and are not written to: leave it out",
    "replacewhere": "Call df.writeTo(…).overwrite(condition), or write INSERT INTO … REPLACE WHERE",
    "overwrite-mode": _OVERWRITE,
    "partitionoverwritemode": _OVERWRITE,
    "txnappid": _ONCE,
    "txnversion": _ONCE,
    "isolation-level": _ISOLATION,
    "validate-from-snapshot-id": _ISOLATION,
    "output-spec-id": "Leave it out: rows are written by the newest partition spec",
    "write-format": "Leave it out: files are Lance's",
    "delete-format": "Leave it out: files are Lance's",
    "delete-granularity": "Leave it out: each fragment has deletions of its own",
    "compression-codec": "Leave it out: files are Lance's",
    "compression-level": "Leave it out: files are Lance's",
    "compression-strategy": "Leave it out: files are Lance's",
    "target-file-size-bytes": "Call system.compact(table => …, target_bytes => …)",
    "distribution-mode": "Leave it out: rows are distributed by partition",
    "use-table-distribution-and-ordering": "Leave it out: tables say how rows are written",
    "fanout-enabled": "Leave it out: rows are clustered by partition",
    "check-nullability": "Leave it out: NOT NULL always holds",
    "check-ordering": "Leave it out: columns are written by their names with df.writeTo(…)",
    "usermetadata": _SUMMARY,
    "optimizewrite": "Leave it out: rows are clustered by partition",
}
# Names that begin so: what follows is the user's.
_FAMILIES: Final[Mapping[str, str]] = {"snapshot-property.": _SUMMARY}


def check_options(table: str, options: Mapping[str, str]) -> None:
    """Refuse options that say which rows are replaced, where, how often, or in which files.

    Args:
        table: The table's name.
        options: Of the write; what is near to none of Iceberg's and Delta's is passed over.

    Raises:
        WriteOptionNotSupported: It says what to write instead.

    Example:
        >>> check_options("lance.shop.orders", {"path": "…"})
    """
    for option in options:
        name = option.lower()
        family = (advice for start, advice in _FAMILIES.items() if name.startswith(start))
        meant = misspelling_of(name, _INSTEAD)
        advice = next(family, None) if meant is None else _INSTEAD[meant]
        if advice is not None:
            raise WriteOptionNotSupported(table=table, option=option, advice=advice)
