"""The procedures of versions: what changed, rolling back, and the mode of transactions."""

from __future__ import annotations

from typing import Final

from pennon.catalog.table_name import parts_of
from pennon.catalog.tables.loaded_table import load
from pennon.catalog.tables.row_history import read_changes, told_changes
from pennon.maintenance.calls.procedure_call import ProcedureCall
from pennon.maintenance.calls.procedure_signature import Parameter, Procedure, Rows
from pennon.maintenance.rollback import rollback
from pennon.manifest.transaction_mode import MODES
from pennon.transaction.mode_change import set_transaction_mode

__all__ = ["TABLE", "VERSION_PROCEDURES"]


def _rollback(call: ProcedureCall) -> Rows:
    version, moment = call.number("version"), call.moment("timestamp")
    return ((rollback(call.location, version, call.storage, timestamp=moment),),)


def _changes(call: ProcedureCall) -> Rows:
    parts = parts_of(call.catalog, call.text("table"))
    until = call.number("to_version")
    start = load(call.catalog, parts, str(call.number("from_version")))
    end = load(call.catalog, parts, None if until is None else str(until))
    return tuple(told_changes(read_changes(end, start, call.columns("key"))))


def _set_transaction_mode(call: ProcedureCall) -> Rows:
    done = set_transaction_mode(call.location, call.text("mode").lower(), call.storage)
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
        renews_table=True,
    ),
    Procedure(
        "rollback_to_timestamp",
        "Make a table as it was at a time, as a new version.",
        (TABLE, Parameter("timestamp", "timestamp", is_required=True)),
        {"version": "long"},
        _rollback,
        renews_table=True,
    ),
    Procedure(
        "set_transaction_mode",
        "Make the transactions of a table strong or weak; its rows stay where they are.",
        (TABLE, Parameter("mode", is_required=True, choices=MODES)),
        {"mode": "string", "version": "long", "leaves": "long", "notes": "string"},
        _set_transaction_mode,
        renews_table=True,
    ),
)
