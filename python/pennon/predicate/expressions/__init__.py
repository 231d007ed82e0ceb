"""Spark's expressions → the expressions of DataFusion that compute exactly the same."""

from pennon.predicate.expressions.semantics import Declined, Semantics
from pennon.predicate.expressions.typed import Typed
from pennon.predicate.expressions.typed_expression import typed_condition, typed_expression

__all__ = ["Declined", "Semantics", "Typed", "typed_condition", "typed_expression"]
