"""Spark's expressions → the expressions of DataFusion that compute exactly the same."""

from pennon.predicate.condition import Declined, Semantics
from pennon.predicate.expressions.typed_expression import typed_condition, typed_expression
from pennon.predicate.typed import Typed

__all__ = ["Declined", "Semantics", "Typed", "typed_condition", "typed_expression"]
