"""Errors of procedures: CALL itself, repairing, adopting and migrating."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class ProcedureArgument(PennonError):
    """An argument of a procedure does not fit."""

    condition = "PROCEDURE_ARGUMENT"
    template = (
        "Cannot call procedure {procedure} with parameter {parameter}: {why}."
        " Its parameters are: {known}."
    )
    sql_state = "42601"


class InvalidRetention(PennonError):
    """A table property about how long versions are kept is no number that it can be."""

    condition = "INVALID_RETENTION"
    template = (
        "Cannot use the table property {property} = '{value}': it is no whole number from {least}"
        " to {most}. Set it to one, or unset it."
    )
    sql_state = "22023"


class RollbackRefused(PennonError):
    """A version cannot be brought back."""

    condition = "ROLLBACK_REFUSED"
    template = "Cannot roll back {table} to version {version}: {why}. {advice}."
    sql_state = "0A000"


class TransactionModeChanged(PennonError):
    """The transactions of a table become, or became, others while it is written."""

    condition = "TRANSACTION_MODE_CHANGED"
    template = "Cannot write to {table}: {why}. {advice}."
    sql_state = "40001"


class ManifestNotRepairable(PennonError):
    """Lost columns of a manifest cannot be restored."""

    condition = "MANIFEST_NOT_REPAIRABLE"
    template = "Cannot repair {location}: {why}. {advice}."
    sql_state = "55000"


class AdoptionRefused(PennonError):
    """A dataset cannot become a partition as it is."""

    condition = "ADOPTION_REFUSED"
    template = "Cannot adopt {dataset} into {table}: {why}. {advice}."
    sql_state = "22023"


class DraftLayout(PennonError):
    """The namespace has the layout of the older draft of the specification."""

    condition = "DRAFT_LAYOUT"
    template = (
        "Cannot {verb} {location}: it has the layout of an older draft (lance.partitioning.*),"
        " which is only read. Run `pennon migrate {location}`, which rewrites no data file."
    )
    sql_state = "0A000"


class DraftNotReadable(PennonError):
    """A namespace of the older draft cannot be understood."""

    condition = "DRAFT_NOT_READABLE"
    template = "Cannot read {location} as a namespace of the older draft: {why}. {advice}."
    sql_state = "22032"


class MigrationRefused(PennonError):
    """A namespace of the older draft cannot become one of the current format."""

    condition = "MIGRATION_REFUSED"
    template = "Cannot migrate {location}: {why}. {advice}."
    sql_state = "22023"


class PlainDatasetRefused(PennonError):
    """A procedure needs a manifest, and the table is a plain dataset."""

    condition = "PLAIN_DATASET"
    template = (
        "Cannot run {procedure} on {table}: it is a plain Lance dataset, which has no partitions"
        " and no __manifest. Make a partitioned table of it with CREATE TABLE … AS SELECT; compact,"
        " vacuum, expire_snapshots and rollback take it as it is."
    )
    sql_state = "0A000"
