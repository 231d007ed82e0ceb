"""Which conjuncts the leaf filter evaluates exactly as Spark would."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp


def is_exact(predicate: str | exp.Expression, schema: pa.Schema) -> bool:
    """Whether the leaf filter evaluates a predicate exactly as Spark does."""
    raise NotImplementedError
