"""What of a query DataFusion computes beside the leaves, exactly as Spark would (design §5)."""

from pennon.pushdown.candidates import Candidate, FragmentMode, candidates
from pennon.pushdown.query import FragmentQuery
from pennon.pushdown.semantics import Semantics

__all__ = ["Candidate", "FragmentMode", "FragmentQuery", "Semantics", "candidates"]
