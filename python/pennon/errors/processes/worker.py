"""Errors of the worker: messages, storage, files."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class MalformedMessage(PennonError):
    """Bytes on the worker's socket are no message of the protocol."""

    condition = "MALFORMED_MESSAGE"
    template = (
        "Cannot understand a message to the worker: {why}."
        " The jar and the Python package have to be of one version."
    )
    sql_state = "08P01"


class UnknownOperation(PennonError):
    """A request names an operation that the worker does not have."""

    condition = "UNKNOWN_OPERATION"
    template = (
        "Cannot do operation {operation}: the worker knows {known}."
        " The jar and the Python package have to be of one version."
    )
    sql_state = "0A000"


class VersionsDiffer(PennonError):
    """The jar and the Python package are of different versions."""

    condition = "VERSIONS_DIFFER"
    template = (
        "Cannot use the package pennon of {interpreter}: it is {package}, and the jar is {jar}."
        " Install the package of the jar's version there, or use the jar inside that package."
    )
    sql_state = "58000"


class PackageVersion(PennonError):
    """A package that the worker needs is missing or of a wrong version."""

    condition = "PACKAGE_VERSION"
    template = (
        "Cannot start the worker with {interpreter}: it has {actual}, and Pennon {pennon} needs"
        " {needed}. Install it there with: pip install {install}."
    )
    sql_state = "58000"


class StorageDenied(PennonError):
    """The storage refused access."""

    condition = "STORAGE_DENIED"
    template = (
        "Cannot access {place}: the storage refused."
        " Check its access rights and the storage options of the catalog."
    )
    sql_state = "42501"


class FileGone(PennonError):
    """A file that a table needs is not there."""

    condition = "FILE_GONE"
    template = (
        "Cannot read {place}: it is gone."
        " Restore it, or read a version of the table that does not need it."
    )
    sql_state = "58030"


class PlanNotRepeated(PennonError):
    """A plan that the worker has forgotten cannot be made again as it was."""

    condition = "PLAN_NOT_REPEATED"
    template = (
        "Cannot read {location} at version {version}: the query was planned long ago, and its plan"
        " cannot be made again with its partitions in the same order. Run the query anew."
    )
    sql_state = "58000"


class ArrowFailure(PennonError):
    """Values cannot be converted to the requested type."""

    condition = "VALUES_NOT_CONVERTIBLE"
    template = "Cannot convert values: {why}. Cast the column in the query."
    sql_state = "22000"


class ReadFailure(PennonError):
    """Lance could not read a dataset."""

    condition = "READ_FAILURE"
    template = "Cannot read or write a Lance dataset: {why}. The worker's log has the details."
    sql_state = "58030"
