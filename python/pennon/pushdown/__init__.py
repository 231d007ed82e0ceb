"""What of a query DataFusion computes beside the leaves, exactly as Spark would: docs/joins.md."""

from pennon.predicate.condition import Semantics
from pennon.pushdown.candidates import Candidate, FragmentMode, choose
from pennon.pushdown.division import Division, divide
from pennon.pushdown.query import FragmentQuery

__all__ = [
    "Candidate",
    "Division",
    "FragmentMode",
    "FragmentQuery",
    "Semantics",
    "choose",
    "divide",
]
