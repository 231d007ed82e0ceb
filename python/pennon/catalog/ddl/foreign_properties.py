"""Table properties of other formats that would have no effect here.

Whoever sets one counts on what it does there. So the families of names that Iceberg and Delta keep
for themselves are refused, but for those that Pennon reads; all other names are the user's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.catalog.near_names import misspelling_of
from pennon.errors import TablePropertyRefused
from pennon.manifest.transaction_mode import MODES
from pennon.settings import COMPACTION, ROW_COMMANDS, SETTINGS, TRANSACTION, Place

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_names"]

_FAMILIES: Final = ("write.", "read.", "commit.", "history.", "gc.", "delta.")
# The collation that Spark gives to columns which state none, and the only one that is stored.
_BYTES: Final = "UTF8_BINARY"
_KNOWN: Final = frozenset(
    setting.name.replace("<command>", command)
    for setting in SETTINGS
    if setting.place is Place.TABLE
    for command in ROW_COMMANDS
)
# What to write instead, by the beginning of the name: the first that fits.
_INSTEAD: Final[Mapping[str, str]] = {
    "format-version": "Leave it out: the format has one version",
    "write.format.default": "Leave it out: files are Lance's",
    "write.delete.format.default": "Leave it out: files are Lance's",
    "write.parquet.": "Leave it out: files are Lance's",
    "write.orc.": "Leave it out: files are Lance's",
    "write.avro.": "Leave it out: files are Lance's",
    "write.distribution-mode": "Leave it out: rows are distributed by partition; their order is"
    " that of ALTER TABLE … WRITE ORDERED BY",
    "write.target-file-size-bytes": "Call system.compact(table => …, target_bytes => …)",
    "write.metadata.metrics.": "Name the columns in write.statistics.columns",
    "write.metadata.delete-after-commit": "Set history.expire.max-snapshot-age-ms",
    "write.metadata.previous-versions-max": "Set history.expire.min-snapshots-to-keep",
    "write.spark.accept-any-schema": "Write by INSERT WITH SCHEMA EVOLUTION or MERGE WITH SCHEMA"
    " EVOLUTION",
    "write.wap.enabled": "Leave it out: the format has no branches; CREATE TAG names a version"
    " that is audited",
    "write.object-storage.": "Leave it out: the folders of partitions begin with a hash",
    "history.expire.max-ref-age-ms": "Write ALTER TABLE … CREATE TAG … RETAIN 30 DAYS",
    "gc.enabled": "Leave it out: files go when expire_snapshots or vacuum is called, or where"
    " history.expire.max-snapshot-age-ms is set",
    "commit.retry.": "Leave it out: commits are tried again by themselves",
    "read.split.": "Set spark.sql.files.maxPartitionBytes",
    "delta.enableChangeDataFeed": "Leave it out: <table>.changes shows what commits did",
    "delta.dataSkipping": "Name the columns in write.statistics.columns",
    "delta.deletedFileRetentionDuration": "Set history.expire.max-snapshot-age-ms",
    "delta.logRetentionDuration": "Set history.expire.max-snapshot-age-ms",
    "delta.autoOptimize.": "Leave it out: small files are put together behind commits",
}


def check_names(table: str, properties: Mapping[str, str]) -> None:
    """Refuse properties that would be kept and do nothing.

    Args:
        table: The table's full name, for errors.
        properties: Those that are set.

    Raises:
        TablePropertyRefused: It says what to write instead.

    Example:
        >>> check_names("lance.shop.orders", {"team": "sales", "write.merge.mode": "copy-on-write"})
        >>> check_names("lance.shop.orders", {"write.ordr": "id"})
        Traceback (most recent call last):
            ...
        pennon.errors.TablePropertyRefused: [TABLE_PROPERTY_REFUSED] Cannot set the \
property write.ordr = 'id' of table lance.shop.orders: no property of that name is supported. \
Write write.order if that is meant.
    """
    for name, value in properties.items():
        if name not in _KNOWN and (_is_of_a_family(name) or _is_meant_as_the_mode(name, value)):
            why = "nothing here reads a property of that name"
            raise TablePropertyRefused(
                property=name, value=value, table=table, why=why, advice=_advice(name)
            )
    collation = properties.get("collation", _BYTES)
    if collation.upper() != _BYTES:
        raise TablePropertyRefused(
            property="collation",
            value=collation,
            table=table,
            why="strings are compared by their bytes",
            advice=f"Leave DEFAULT COLLATION out, and write COLLATE {collation} in queries",
        )
    compaction = properties.get(COMPACTION.name, "true")
    if compaction.lower() not in ("true", "false"):
        raise TablePropertyRefused(
            property=COMPACTION.name,
            value=compaction,
            table=table,
            why="it is neither 'true' nor 'false'",
            advice="Write one of these, or leave the property out",
        )


def _is_of_a_family(name: str) -> bool:
    return name == "format-version" or name.lower().startswith(_FAMILIES)


def _is_meant_as_the_mode(name: str, value: str) -> bool:
    """Whether a name is the mode's but for its spelling, as its value tells, too."""
    is_near = misspelling_of(name.lower(), [TRANSACTION.name]) is not None
    return is_near and value.lower() in MODES


def _advice(name: str) -> str:
    for start, advice in _INSTEAD.items():
        if name.lower().startswith(start.lower()):
            return advice
    near = misspelling_of(name.lower(), sorted(_KNOWN))
    return "Leave it out" if near is None else f"Write {near} if that is meant"
