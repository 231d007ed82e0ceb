"""A scan's derived key as EXPLAIN shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.planning import ScanPlan
    from pennon.spec.functions.partition_layout import LayoutFunction
    from pennon.spec.functions.spec_functions import SpecFunction


def key_text(functions: Sequence[LayoutFunction], plan: ScanPlan, note: str) -> str:
    """Spell the functions of a key over the columns of one scan, and what is said of its groups.

    Example:
        ``bucket(8, customer_id), region as one key (24 groups in 4 tasks)``
    """
    texts = [function_text(function, plan) for function in functions]
    return f"{', '.join(texts)} as one key ({note})"


def function_text(function: LayoutFunction | SpecFunction, plan: ScanPlan) -> str:
    """Spell one function over the columns of one scan: ``bucket(8, customer_id)``."""
    schema = plan.snapshot.schema
    sources = [schema.field_by_id(source_id) for source_id in function.source_ids]
    return function.grouping.transform.sql([str(source) for source in sources])
