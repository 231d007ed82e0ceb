"""Which conjuncts the leaf filter evaluates exactly as Spark would.

Typed comparisons, IN, IS [NOT] NULL, startswith, endswith, contains and AND, OR, NOT of these, on
integers, decimals, strings, binary, booleans, dates and timestamps. Floats (NaN, -0.0), casts,
arithmetic and functions are left to Spark. Declining is always right and never an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.errors import PennonError
from pennon.planning.projection import bound_predicate
from pennon.planning.projection.bind import bind
from pennon.predicate.parse import parse_predicate

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from pennon.spec.schema import NamespaceSchema


def is_exact(predicate: str | exp.Expression, schema: pa.Schema | NamespaceSchema) -> bool:
    """Whether the leaf filter evaluates a predicate exactly as Spark does.

    Args:
        predicate: SQL text or a parsed predicate.
        schema: The full schema of the table.

    Returns:
        True when Spark need not evaluate the predicate again; False for whatever is not
        understood, syntax errors and unknown columns included.

    Example:
        >>> import pyarrow as pa
        >>> is_exact("a = 5", pa.schema([("a", pa.int32())]))
        True
        >>> is_exact("a + 1 = 5", pa.schema([("a", pa.int32())]))
        False
    """
    arrow = getattr(schema, "arrow", schema)
    try:
        tree = parse_predicate(predicate) if isinstance(predicate, str) else predicate
        return bound_predicate.is_exact(bind(tree, arrow))
    except PennonError:
        return False
