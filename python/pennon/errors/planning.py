"""Errors of planning and execution."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class UnknownColumn(PennonError):
    """A predicate or projection names a column that the table does not have."""

    condition = "UNKNOWN_COLUMN"
    template = "Cannot find column {column}: the table has {columns}. Name one of its columns."
    sql_state = "42703"


class PredicateNotEvaluable(PennonError):
    """No part of the reader can evaluate a conjunct."""

    condition = "PREDICATE_NOT_EVALUABLE"
    template = (
        "Cannot evaluate the predicate {predicate} on {namespace}: {reason}. "
        "Use comparisons and functions that DataFusion knows, or filter the rows afterwards."
    )
    sql_state = "0A000"
