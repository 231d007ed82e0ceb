"""Operands of functions of texts: those that have to be texts, and those that are stated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.semantics import Declined
from pennon.predicate.typed import Typed
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from collections.abc import Sequence


def texts(values: Sequence[Typed]) -> list[exp.Expr]:
    """Take expressions that all have to be texts.

    Raises:
        Declined: One is not.
    """
    if any(value.type != pa.utf8() for value in values):
        raise Declined(why="what is no text")
    return [value.tree for value in values]


def literal_text(value: Typed) -> str | None:
    """Give the text that an expression states; None where it is computed."""
    literal = literal_value(value.tree)
    is_text = literal is not None and literal.is_valid and pa.types.is_string(literal.type)
    return str(literal.as_py()) if literal is not None and is_text else None
