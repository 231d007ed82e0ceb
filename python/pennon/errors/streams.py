"""Errors of tables that are read as streams."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class StreamOptionRefused(PennonError):
    """An option of a stream's source is not known, or has a value that it cannot have."""

    condition = "STREAM_OPTION_REFUSED"
    template = "Cannot read {table} as a stream with {option} = {value!r}: {why}. {advice}."
    sql_state = "22023"


class StreamSourceRefused(PennonError):
    """A table does not tell which rows a commit added."""

    condition = "STREAM_SOURCE_REFUSED"
    template = (
        "Cannot read {table} as a stream: {why}. Read a table with strong transactions, or the"
        " whole table in each batch of another stream by foreachBatch."
    )
    sql_state = "0A000"


class StreamSourceChanged(PennonError):
    """A commit did more than add rows, which a stream of added rows cannot tell."""

    condition = "STREAM_SOURCE_CHANGED"
    template = (
        "Cannot read version {version} of {table} as a stream: its {operation} removed or changed"
        " rows. Set option('skipChangeCommits', 'true') to pass over such commits, with the rows"
        " that they add, or start anew with another checkpoint."
    )
    sql_state = "55000"


class StreamPositionExpired(PennonError):
    """The versions behind a stream's position are not all there any more."""

    condition = "STREAM_POSITION_EXPIRED"
    template = (
        "Cannot read {table} as a stream from version {version} on: {why}. Start anew with another"
        " checkpoint, and keep versions for longer than the stream pauses"
        " (history.expire.max-snapshot-age-ms)."
    )
    sql_state = "55000"


class StreamColumnsChanged(PennonError):
    """A column that a stream reads was dropped or has another type by now."""

    condition = "STREAM_COLUMNS_CHANGED"
    template = (
        "Cannot read version {version} of {table} into the columns that the stream began with:"
        " column {column} {what}. Start the stream again, with its checkpoint."
    )
    sql_state = "55000"
