"""Errors of predicates."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class PredicateSyntaxError(PennonError):
    """A predicate that is no boolean expression of Spark SQL."""

    condition = "PREDICATE_SYNTAX_ERROR"
    template = (
        "Cannot read predicate {predicate}: {reason} at line {line}, column {column}. "
        "Write one boolean expression of Spark SQL."
    )
    sql_state = "42601"
