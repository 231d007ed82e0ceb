"""Statements that Pennon's tables do not support, and what to use instead.

Such statements are Spark's for tables with directories as partitions, or another table format's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.catalog.configured_catalog import misspelling_of
from pennon.errors import StatementNotSupported, TablePropertyRefused
from pennon.leaf.write.incoming_rows import counted_fields
from pennon.manifest.table_identity import MODES
from pennon.settings import COMPACTION, COMPRESSION, ROW_COMMANDS, SETTINGS, TRANSACTION, Place
from pennon.spec.column_names import STATISTICS_COLUMNS, CountedColumns
from pennon.spec.write_properties import codecs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.spec.schema import NamespaceSchema

__all__ = ["check_counted_columns", "check_named_columns", "check_names", "not_supported"]

# Table properties of other formats that would have no effect here.
#
# Whoever sets one counts on what it does there. So the families of names that Iceberg and Delta
# keep for themselves are refused, but for those that Pennon reads; all other names are the user's.

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
            why = "no property of that name is supported"
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


# The table property ``write.statistics.columns`` of a statement: it has to name columns.


def check_counted_columns(
    table: str, properties: Mapping[str, str], schema: NamespaceSchema
) -> None:
    """Refuse names under which nothing would be counted.

    A column that is named and dropped later is no error: the property is looked at when it is set.

    Args:
        table: The table's full name, for errors.
        properties: Those that are set.
        schema: The table's columns.

    Raises:
        TablePropertyRefused: It lists the columns that can be counted.

    Example:
        >>> import pyarrow as pa
        >>> from pennon.spec import NamespaceSchema
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int64()}))
        >>> check_counted_columns("lance.shop.t", {"write.statistics.columns": "idd"}, schema)
        Traceback (most recent call last):
            ...
        pennon.errors.TablePropertyRefused: [TABLE_PROPERTY_REFUSED] Cannot set the \
property write.statistics.columns = 'idd' of table lance.shop.t: no column idd has statistics. \
Write a number, or some of: id.
    """
    stated = CountedColumns.of(properties).names
    if stated is None:
        return
    can_be = list(counted_fields({STATISTICS_COLUMNS: str(len(schema.fields))}, schema))
    heads = {".".join(path[:end]).lower() for path in can_be for end in range(1, len(path) + 1)}
    missing = sorted(stated - heads)
    if missing:
        raise TablePropertyRefused(
            property=STATISTICS_COLUMNS,
            value=properties[STATISTICS_COLUMNS],
            table=table,
            why=f"no column {' or '.join(missing)} has statistics",
            advice=f"Write a number, or some of: {', '.join('.'.join(path) for path in can_be)}",
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


@dataclass(frozen=True, slots=True)
class _Advice:
    """Why a statement means nothing, and what to type; both may name the table and its catalog."""

    words: tuple[str, ...]
    why: str
    advice: str


_VALUES: Final = "a partition is made of its rows' values"
_NO_STATEMENT: Final = "it is no statement for tables of Pennon"
_DELETE: Final = (
    "DELETE FROM {table} WHERE …, which reads no row where the condition decides whole partitions"
)
_NO_KEYS: Final = "the format has no identifier fields"
_MERGE: Final = "MERGE INTO {table} … ON …, which names the columns that identify a row"
_HISTORY: Final = "SELECT * FROM {table}.history, or {table}.snapshots for what each commit did"
_OF_PARTITION: Final = "what is known of a PARTITION stands in a metadata table"
_PARTITIONS: Final = (
    "SELECT * FROM {table}.partitions, with WHERE partition.<field> = … for some of them"
)
_OWN_FILES: Final = "each table has files of its own"
_COPY: Final = "CREATE TABLE {table} PARTITIONED BY (…) AS SELECT * FROM …"
_ONE_FIELD: Final = "a statement is about one partition field"
_ADVICE: Final = (
    # In front of those of PARTITION, which FIELDS would be taken for.
    _Advice(
        ("ADD", "PARTITION", "FIELDS"),
        _ONE_FIELD,
        "ALTER TABLE {table} ADD PARTITION FIELD …, once for each",
    ),
    _Advice(
        ("DROP", "PARTITION", "FIELDS"),
        _ONE_FIELD,
        "ALTER TABLE {table} DROP PARTITION FIELD …, once for each",
    ),
    _Advice(("ADD", "PARTITION"), _VALUES, "INSERT INTO {table} …, which makes it with its rows"),
    _Advice(("DROP", "PARTITION"), _VALUES, _DELETE),
    _Advice(("TRUNCATE", "TABLE"), _VALUES, _DELETE),
    _Advice(("PARTITION",), _VALUES, "UPDATE {table} SET …, which moves rows where they belong"),
    _Advice(
        ("RECOVER", "PARTITIONS"),
        "its manifest names every partition",
        "CALL {catalog}.system.adopt(table => '{name}', path => '…'), which takes datasets into it",
    ),
    _Advice(
        ("MSCK",),
        "its manifest names every partition",
        "CALL {catalog}.system.check(table => '{name}'), which looks for what is missing",
    ),
    _Advice(
        ("ANALYZE", "TABLE"),
        "its statistics stand with its partitions",
        "CALL {catalog}.system.analyze(table => '{name}')",
    ),
    _Advice(("SET", "IDENTIFIER", "FIELDS"), _NO_KEYS, _MERGE),
    _Advice(("DROP", "IDENTIFIER", "FIELDS"), _NO_KEYS, _MERGE),
    _Advice(
        ("CLUSTER", "BY"),
        "rows are clustered by the partition fields and the write order",
        "PARTITIONED BY (bucket(16, …)) for a new table, ALTER TABLE {table} ADD PARTITION FIELD"
        " bucket(16, …) or ALTER TABLE {table} WRITE ORDERED BY … for one that is there",
    ),
    _Advice(
        ("SORTED", "BY"),
        "rows are sorted by the write order, not within buckets",
        "bucketBy(…) without sortBy(…), or CLUSTERED BY (…) INTO … BUCKETS without SORTED BY, then"
        " ALTER TABLE {table} WRITE ORDERED BY …",
    ),
    _Advice(
        ("VACUUM",),
        _NO_STATEMENT,
        "CALL {catalog}.system.vacuum(table => '{name}'), which deletes files that no version"
        " names, or expire_snapshots, which deletes old versions",
    ),
    _Advice(("FSCK",), _NO_STATEMENT, "CALL {catalog}.system.check(table => '{name}')"),
    _Advice(("REORG", "TABLE"), _NO_STATEMENT, "CALL {catalog}.system.compact(table => '{name}')"),
    _Advice(("SHALLOW", "CLONE"), _OWN_FILES, _COPY),
    _Advice(("DEEP", "CLONE"), _OWN_FILES, _COPY),
    _Advice(("OPTIMIZE",), _NO_STATEMENT, "CALL {catalog}.system.compact(table => '{name}')"),
    _Advice(
        ("RESTORE",),
        _NO_STATEMENT,
        "CALL {catalog}.system.rollback(table => '{name}', version => 3)",
    ),
    _Advice(("DESCRIBE", "HISTORY"), _NO_STATEMENT, _HISTORY),
    _Advice(("DESC", "HISTORY"), _NO_STATEMENT, _HISTORY),
    _Advice(
        ("DESCRIBE", "DETAIL"),
        _NO_STATEMENT,
        "DESCRIBE TABLE EXTENDED {table}, or SELECT * FROM {table}.files",
    ),
    # Behind DETAIL and HISTORY: what else arrives is of a PARTITION.
    _Advice(("DESCRIBE",), _OF_PARTITION, _PARTITIONS),
    _Advice(("DESC",), _OF_PARTITION, _PARTITIONS),
    _Advice(
        ("CREATE", "VIEW"),
        "the catalog {catalog} keeps tables alone",
        "CREATE TEMPORARY VIEW …, or CREATE VIEW spark_catalog.default.… for one that stays",
    ),
)
_FILLERS: Final = frozenset({"IF", "NOT", "EXISTS", "OR", "REPLACE"})


def not_supported(words: Sequence[str], catalog: str, table: str) -> StatementNotSupported | None:
    """Find what to say of a statement.

    Args:
        words: The first words of the statement besides the table's name.
        catalog: The catalog's name.
        table: The table's full name.

    Returns:
        The error, or None for a statement that has a meaning.

    Example:
        >>> not_supported(["OPTIMIZE"], "lance", "lance.shop.orders").parameters["advice"]
        "CALL lance.system.compact(table => 'shop.orders')"
    """
    stated = [word.upper() for word in words if word.upper() not in _FILLERS]
    for advice in _ADVICE:
        if tuple(stated[: len(advice.words)]) == advice.words and "FIELD" not in stated:
            name = table.removeprefix(f"{catalog}.")
            parts = {"catalog": catalog, "table": table, "name": name}
            return StatementNotSupported(
                statement=" ".join(advice.words),
                table=table,
                why=advice.why.format(**parts),
                advice=advice.advice.format(**parts),
            )
    return None


def check_named_columns(table: str, properties: Mapping[str, str], schema: NamespaceSchema) -> None:
    """Refuse properties that name columns, or codecs, that there are not.

    Args:
        table: The table's full name, for errors.
        properties: Those that are set.
        schema: The table's columns.

    Raises:
        TablePropertyRefused: It says what there is.
    """
    check_counted_columns(table, properties, schema)
    value = properties.get(COMPRESSION.name, "")
    _, wrong = codecs(value, schema.arrow)
    if wrong:
        raise TablePropertyRefused(
            property=COMPRESSION.name,
            value=value,
            table=table,
            why=f"'{wrong[0]}' names no codec, or no column before it",
            advice="Write lz4, zstd or none, or a column before one of them, as in 'comment zstd'",
        )
