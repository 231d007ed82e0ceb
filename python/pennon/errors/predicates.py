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


class PredicateTooDeep(PennonError):
    """A predicate whose parts are nested too deep to be read."""

    condition = "PREDICATE_TOO_DEEP"
    template = (
        "Cannot read predicate {predicate}: its parts are nested more than {most} levels deep. "
        "Write chains of AND or OR without parentheses around each pair, or a list with IN."
    )
    sql_state = "54001"
