"""Errors of tags and of change feeds."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class TagSyntax(PennonError):
    """A statement about tags or branches is not understood."""

    condition = "TAG_SYNTAX"
    template = "Cannot parse {text}: {why}. Write {form}."
    sql_state = "42601"


class TagRefused(PennonError):
    """A tag cannot be made as it is asked for."""

    condition = "TAG_REFUSED"
    template = "Cannot make tag {tag} of {table}: {why}. {advice}."
    sql_state = "22023"


class TagAlreadyExists(PennonError):
    """A tag to create is there already."""

    condition = "TAG_ALREADY_EXISTS"
    template = (
        "Cannot create tag {tag} of {table}: it names version {version} already."
        " Choose another name, or replace it with CREATE OR REPLACE TAG (--replace on the command"
        " line, replace=True in Python)."
    )
    sql_state = "42710"


class TagNotFound(PennonError):
    """There is no such tag."""

    condition = "TAG_NOT_FOUND"
    template = "Cannot {verb} tag {tag} of {table}: {known}. Check the name."
    sql_state = "42704"


class BranchesNotSupported(PennonError):
    """A statement about branches, which the format has not."""

    condition = "BRANCHES_NOT_SUPPORTED"
    template = (
        "Cannot run {statement} on {table}: the format has one line of versions and no branches."
        " Name a version with CREATE TAG, or copy the table with CREATE TABLE … AS SELECT."
    )
    sql_state = "0A000"


class ChangesNotKept(PennonError):
    """A version does not hold its rows, so that nobody knows how they changed."""

    condition = "CHANGES_NOT_KEPT"
    template = (
        "Cannot list the changes of {location} at version {version}: {why}."
        " Read the changes of a table of strong transactions."
    )
    sql_state = "0A000"


class ChangesNotPaired(PennonError):
    """The key columns of a change feed do not identify a row."""

    condition = "CHANGES_NOT_PAIRED"
    template = (
        "Cannot pair the changes of {table} at version {version} by {key}: several rows have the"
        " same values. Name columns whose values identify a row, or read without a key."
    )
    sql_state = "21000"


class ChangeKeyMissing(PennonError):
    """Updates are asked for, and no key identifies the rows."""

    condition = "CHANGE_KEY_MISSING"
    template = (
        "Cannot tell updates among the changes of {table}: no column is named whose values tell"
        " rows apart. Name them in the option key: WITH (computeUpdates = 'true', key = 'id')."
    )
    sql_state = "42601"


class ChangeRangeReversed(PennonError):
    """The first commit whose changes are asked for comes behind the last one."""

    condition = "CHANGE_RANGE_REVERSED"
    template = (
        "Cannot list the changes of {table} from {start} to {end}: the first is the later one."
        " Exchange them."
    )
    sql_state = "22023"
