"""Errors of queries that the worker computes beside the leaves."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class FragmentOverflow(PennonError):
    """A value does not fit the type that it has in SQL, as under ANSI in Spark itself."""

    condition = "ARITHMETIC_OVERFLOW"
    template = (
        "Cannot compute a part of the query: a value does not fit its type ({why})."
        " Cast it to a wider type in the query."
    )
    sql_state = "22003"


class FragmentDivision(PennonError):
    """A number is divided by zero, as under ANSI in Spark itself."""

    condition = "DIVIDE_BY_ZERO"
    template = (
        "Cannot compute a part of the query: a number is divided by zero ({why})."
        " Divide by nullif(divisor, 0), or use try_divide or try_mod, which give NULL."
    )
    sql_state = "22012"


class FragmentText(PennonError):
    """A text is cast to a type of which it is no value, as under ANSI in Spark itself."""

    condition = "CAST_INVALID_INPUT"
    template = (
        "Cannot compute a part of the query: the text {value} is no {type}."
        " Correct it, or use try_cast, which gives NULL for it."
    )
    sql_state = "22018"


class FragmentTime(PennonError):
    """A text cannot be read by the pattern of a time, as under ANSI in Spark itself."""

    condition = "CANNOT_PARSE_TIMESTAMP"
    template = (
        "Cannot compute a part of the query: the text {value} is no time of the pattern."
        " Correct it, or use try_to_date or try_to_timestamp, which give NULL for it."
    )
    sql_state = "22007"


class FragmentPart(PennonError):
    """A split text has fewer parts than one is asked for, as under ANSI in Spark itself."""

    condition = "INVALID_ARRAY_INDEX"
    template = (
        "Cannot compute a part of the query: the index {index} is out of bounds, for a text is"
        " split into {count} parts. Use get(split(…), {index}), which gives NULL for it."
    )
    sql_state = "22003"


class FragmentRows(PennonError):
    """A subquery that stands for one value has more than one row, as in Spark itself."""

    condition = "SCALAR_SUBQUERY_TOO_MANY_ROWS"
    template = (
        "Cannot compute a part of the query: a subquery that is used as one value has {rows} rows."
        " Aggregate them, or end the subquery with LIMIT 1."
    )
    sql_state = "21000"


class FragmentMemory(PennonError):
    """A query needs more memory than the worker gives to all of its queries."""

    condition = "FRAGMENT_MEMORY"
    template = (
        "Cannot compute a query within the {pool} bytes that a worker gives to all of them: {why}."
        " Raise spark.pennon.worker.memory or PENNON_MEMORY, or set the catalog's option execution"
        " to spark."
    )
    sql_state = "53200"


class FragmentFailed(PennonError):
    """DataFusion refused a query that it had planned."""

    condition = "FRAGMENT_FAILED"
    template = (
        "Cannot compute a part of the query beside the leaves: {why}."
        " Set the catalog's option execution to spark, and report this as a bug of Pennon."
    )
    sql_state = "XX000"


class ExecutionUnknown(PennonError):
    """A session says of joins and aggregates that neither workers nor Spark execute them."""

    condition = "EXECUTION_UNKNOWN"
    template = (
        "Cannot use {setting} = {value}: it is neither worker nor spark. Set it to one of these, "
        "or unset it."
    )
    sql_state = "22023"


class BytesUnknown(PennonError):
    """A session limits what one process executes, and not by a number of bytes."""

    condition = "BYTES_UNKNOWN"
    template = (
        "Cannot use {setting} = {value}: it is no number of bytes. Set it to one, such as 64m or "
        "0, or unset it."
    )
    sql_state = "22023"
