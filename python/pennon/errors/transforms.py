"""Errors of partition transforms."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class UnknownTransform(PennonError):
    """A transform type or function that this version does not know."""

    condition = "UNKNOWN_TRANSFORM"
    template = "Cannot use partition transform {name}: it is not known. Use one of {known}."
    sql_state = "42883"


class InvalidTransform(PennonError):
    """A transform whose parameters are missing, too many or out of range."""

    condition = "INVALID_TRANSFORM"
    template = (
        "Cannot use partition transform {transform}: it takes {expected}, not {actual}. "
        "Write it as {form}."
    )
    sql_state = "22023"


class TransformSyntax(PennonError):
    """A text that is neither a column nor a transform."""

    condition = "TRANSFORM_SYNTAX"
    template = (
        "Cannot read {transform} as a partition transform: {why}. "
        "Write a column, or a transform such as bucket(16, customer_id) or months(ordered_at)."
    )
    sql_state = "42601"


class TransformOnWrongType(PennonError):
    """A transform on a column of a type that it does not take."""

    condition = "TRANSFORM_ON_WRONG_TYPE"
    template = (
        "Cannot apply {transform} to a column of type {type}: it takes {allowed}. "
        "Choose another transform, or another column."
    )
    sql_state = "42804"


class PartitionExpressionFailed(PennonError):
    """DataFusion could not evaluate a partition expression."""

    condition = "PARTITION_EXPRESSION_FAILED"
    template = (
        "Cannot evaluate the partition expression {expression} over columns of types {types}: "
        "DataFusion says {reason}. Correct the expression, or cast its columns to the types "
        "that it takes."
    )
    sql_state = "22000"


class PartitionExpressionRejected(PennonError):
    """An expression breaks one of the format's requirements on partition expressions."""

    condition = "PARTITION_EXPRESSION_REJECTED"
    template = (
        "Cannot partition by the expression {expression} over columns of types {types}: it is not "
        "{requirement}, since {reason}. Change the expression so that every client computes the "
        "same partition value for equal rows, at any time."
    )
    sql_state = "42611"
