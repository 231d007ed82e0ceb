"""The procedures of versions: what changed, rolling back, and the mode of transactions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pennon.catalog.configured_catalog import is_path
from pennon.catalog.directory import Directory
from pennon.catalog.table_name import parts_of
from pennon.catalog.tables.loaded_table import load
from pennon.catalog.tables.row_history import read_changes, told_changes
from pennon.maintenance.calls.procedure_signature import Arguments, Parameter, Procedure, Rows
from pennon.maintenance.rollback import rollback
from pennon.transaction.mode_change import MODES, set_transaction_mode

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog

__all__ = ["TABLE", "VERSION_PROCEDURES", "located", "moment_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def located(catalog: Catalog, table: str) -> str:
    """Give the location of a table by its name below the catalog, or by its path.

    Example:
        >>> from pennon.catalog.configured_catalog import Catalog
        >>> located(Catalog("lance", "/lake"), "/data/orders/")
        '/data/orders'
    """
    parts = parts_of(catalog, table)
    return parts[0] if is_path(parts[0]) else Directory(catalog).registration(parts).location


def moment_of(micros: object) -> datetime | None:
    """Give the time of a parameter of type timestamp, where it is given.

    Example:
        >>> print(moment_of(1_000_000))
        1970-01-01 00:00:01+00:00
    """
    return _EPOCH + timedelta(microseconds=micros) if isinstance(micros, int) else None


def _rollback(catalog: Catalog, arguments: Arguments) -> Rows:
    version = arguments.get("version")
    location = located(catalog, str(arguments["table"]))
    moment = moment_of(arguments.get("timestamp"))
    number = version if isinstance(version, int) else None
    return ((rollback(location, number, catalog.storage, timestamp=moment),),)


def _changes(catalog: Catalog, arguments: Arguments) -> Rows:
    parts = parts_of(catalog, str(arguments["table"]))
    start = load(catalog, parts, str(arguments["from_version"]))
    until, key = arguments.get("to_version"), arguments.get("key")
    end = load(catalog, parts, None if until is None else str(until))
    names = [name.strip() for name in str(key).split(",")] if key else []
    return tuple(told_changes(read_changes(end, start, names)))


def _set_transaction_mode(catalog: Catalog, arguments: Arguments) -> Rows:
    mode = str(arguments["mode"]).lower()
    done = set_transaction_mode(located(catalog, str(arguments["table"])), mode, catalog.storage)
    return ((done.mode, done.version, done.leaves, "; ".join(done.notes)),)


TABLE: Final = Parameter("table", is_required=True)

VERSION_PROCEDURES: Final = (
    Procedure(
        "changes",
        "Tell the rows that the commits between two versions deleted, inserted and updated.",
        (
            TABLE,
            Parameter("from_version", "long", is_required=True),
            Parameter("to_version", "long"),
            # Columns that identify a row, with commas between, so that updates are reported as
            # such.
            Parameter("key"),
        ),
        {
            "change_type": "string",
            "commit_version": "long",
            "commit_timestamp": "timestamp",
            # As JSON; the metadata table changes has the columns themselves.
            "row": "string",
        },
        _changes,
    ),
    Procedure(
        "rollback",
        "Make a table as it was at a version, as a new version.",
        (TABLE, Parameter("version", "long", is_required=True)),
        {"version": "long"},
        _rollback,
    ),
    Procedure(
        "rollback_to_timestamp",
        "Make a table as it was at a time, as a new version.",
        (TABLE, Parameter("timestamp", "timestamp", is_required=True)),
        {"version": "long"},
        _rollback,
    ),
    Procedure(
        "set_transaction_mode",
        "Make the transactions of a table strong or weak; its rows stay where they are.",
        (TABLE, Parameter("mode", is_required=True, choices=MODES)),
        {"mode": "string", "version": "long", "leaves": "long", "notes": "string"},
        _set_transaction_mode,
    ),
)
